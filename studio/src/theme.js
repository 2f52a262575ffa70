// Light and dark: what the system prefers, until the switch says otherwise.

const KEPT = "thonecls-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // storage may be switched off
  }
}

function apply(onChange) {
  document.documentElement.dataset.theme = kept() ?? (system.matches ? "dark" : "light");
  onChange(document.documentElement.dataset.theme);
}

/** Follow the system's preference; `onChange(theme)` runs now and at every change. */
export function startTheme(onChange) {
  system.addEventListener("change", () => apply(onChange));
  apply(onChange);
  return function toggle() {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEPT, next);
    } catch {
      // then it holds until the page is loaded again
    }
    document.documentElement.dataset.theme = next;
    onChange(next);
  };
}

/** The colour of a role in the present theme, for what is drawn on a canvas. */
export function colour(role) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();
}
