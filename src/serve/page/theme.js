// theme.js: colours that scripts draw with. Those of curves are Okabe and Ito's, told apart by the colour-blind,
// and curves differ in their dashes too; those of maps are viridis (van der Walt and Smith), whose lightness rises
// with the value, so that they stay readable in black and white.

const stops = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"]
  .map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));

// share from 0 to 1; [red, green, blue].
export function viridis(share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  return stops[i].map((value, k) => Math.round(value + (at - i) * (stops[i + 1][k] - value)));
}

export const dark = matchMedia("(prefers-color-scheme: dark)");
export const still = matchMedia("(prefers-reduced-motion: reduce)");

// The page's letters on a canvas: as large as their share of the page's own, which grow with the window.
export const letters = (share, ratio = 1) => `${Math.round(share * ratio * parseFloat(getComputedStyle(document.documentElement).fontSize))}px system-ui, sans-serif`;

export function colours() {
  const get = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return { ink: get("--ink"), faint: get("--faint"), paper: get("--paper"), line: get("--line"),
    curves: [get("--blue"), get("--orange"), get("--green"), get("--red")] };
}
export const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
