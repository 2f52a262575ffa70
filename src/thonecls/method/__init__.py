"""The paper's method: losses, teacher, sampler, network, training loop and model."""
