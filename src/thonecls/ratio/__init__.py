"""The density ratio in closed form: its estimate, and the model that maps by it."""
