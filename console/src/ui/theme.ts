/** Light, dark, or as the system has it. */
export type Theme = "system" | "light" | "dark";
const KEY = "paddock.theme";

export function chosenTheme(): Theme {
  const chosen = localStorage.getItem(KEY);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function showTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}
