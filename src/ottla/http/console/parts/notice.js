// What went wrong or well, said in the broker's own words.

import { h } from "./dom.js";
import { place } from "./router.js";

const SHOWN_MS = 6000;

export function notify(...content) {
  const notices = document.querySelector(".notices");
  const notice = h("div.notice", ...content);
  notices.append(notice);
  // Re-showing it moves it above a dialog that was opened since.
  notices.hidePopover();
  notices.showPopover();
  setTimeout(() => notice.remove(), SHOWN_MS);
}

// Hints of the broker name endpoints of the REST API; here, pages are meant.
const ENDPOINT = /(GET|PUT|POST|PATCH|DELETE) (\/v1|the configs)/;
const PAGES = {
  UNKNOWN_TOPIC_OR_PARTITION: ["topics", "All topics"],
  OFFSET_OUT_OF_RANGE: ["topics", "All topics"],
  TOPIC_ALREADY_EXISTS: ["topics", "All topics"],
  GROUP_ID_NOT_FOUND: ["groups", "All groups"],
  BROKER_NOT_AVAILABLE: ["cluster", "The nodes of the cluster"],
};

function hintOf({ hint, code }) {
  if (!hint) return undefined;
  if (!ENDPOINT.test(hint)) return h("p", hint);
  const page = PAGES[code];
  return page && h("p", h("a", { href: place(page[0]) }, page[1]));
}

/** A problem+json document, for people. */
export function problemCard(problem) {
  return h(
    "div.problem",
    { role: "alert" },
    h("strong", problem.detail || problem.title),
    hintOf(problem),
    problem.code && h("code", problem.code),
  );
}

export function problemOf(failed) {
  return problemCard(failed.problem ?? { title: failed.message });
}

/** Do it; if the broker refuses, put why into `place`. Whether it was done. */
export async function attempt(place, work) {
  try {
    place.replaceChildren();
    await work();
    return true;
  } catch (failed) {
    if (failed.name !== "AbortError") place.replaceChildren(problemOf(failed));
    return false;
  }
}
