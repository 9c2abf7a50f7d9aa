// One message in a drawer in front of a list. The drawer has the address of the message, and Back closes it.

import { open } from "../parts/dialog.js";
import { h, replace } from "../parts/dom.js";
import { icon } from "../parts/icons.js";
import { leaveDrawer, noteDrawer } from "../parts/router.js";
import { messageParts, messagePlace } from "./message-parts.js";

/** Show `messages[index]`; the arrow keys go to its neighbours. */
export function viewMessage(topic, messages, index) {
  const content = h("div.content");
  const dialog = open("", content, { kind: "drawer" });
  const title = dialog.querySelector("h2");
  let at = index;

  const draw = (isOpen) => {
    const message = messages[at];
    noteDrawer(messagePlace(topic, message), isOpen);
    title.textContent = `${topic}, partition ${message.partition}, offset ${message.offset}`;
    replace(content, steps(), ...messageParts(topic, message));
  };
  const step = (by) => {
    if (messages[at + by] === undefined) return;
    at += by;
    draw(true);
  };
  const steps = () =>
    h(
      "div.actions",
      h("button.small", { type: "button", onclick: () => step(-1), disabled: at === 0 }, icon("left"), "Previous"),
      h(
        "button.small",
        { type: "button", onclick: () => step(1), disabled: at === messages.length - 1 },
        "Next",
        icon("right"),
      ),
    );
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && !event.target.closest("input, textarea, pre")) step(by);
  });
  dialog.addEventListener("close", leaveDrawer);
  draw(false);
  return dialog;
}
