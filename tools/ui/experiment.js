// The theme of the system, also when it changes; paper is white.
const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = (on) => { document.documentElement.dataset.theme = on ? "dark" : "light"; };
theme(dark.matches);
dark.addEventListener("change", () => theme(dark.matches));
addEventListener("beforeprint", () => theme(false));
addEventListener("afterprint", () => theme(dark.matches));
