// What went wrong or well, said in the broker's own words.

import { h } from "./dom.js";

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

/** A problem+json document, for people. */
export function problemCard(problem) {
  return h(
    "div.problem",
    { role: "alert" },
    h("strong", problem.detail || problem.title),
    problem.hint && h("p", problem.hint),
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
