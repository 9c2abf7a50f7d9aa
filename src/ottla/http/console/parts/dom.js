// Elements without markup: text stays text, whatever is in it.

const SVG = "http://www.w3.org/2000/svg";
// Characters that reorder the text around them, and so can make it look like another.
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const SHOWN_AS_TEXT = new Set(["title", "aria-label", "placeholder"]);

/** Text with reordering characters as their names: "U+202E". */
function inOrder(text) {
  const named = (letter) => `⟨U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  return text.replace(REORDERING, named);
}

/** h("button.quiet", { onclick: f, title: "…" }, "Text", child, …) */
export function h(selector, ...rest) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, rest);
}

export function svg(tag, ...rest) {
  return fill(document.createElementNS(SVG, tag), rest);
}

function fill(element, rest) {
  const hasProps =
    rest[0] !== null && typeof rest[0] === "object" && !(rest[0] instanceof Node) && !Array.isArray(rest[0]);
  if (hasProps) setAll(element, rest.shift());
  element.append(...flat(rest));
  return element;
}

function setAll(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : SHOWN_AS_TEXT.has(name) ? inOrder(String(value)) : value);
  }
}

function flat(children) {
  const given = children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);
  return given.map((child) => (typeof child === "string" ? inOrder(child) : child));
}

export function replace(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}
