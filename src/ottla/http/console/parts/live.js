// Polling while the page is visible.

/** Run `work` now and every `ms` until the signal; not while the tab is hidden, and never twice at a time. */
export function every(ms, signal, work) {
  let timer;
  let isRunning = false;
  const turn = async () => {
    clearTimeout(timer);
    if (signal?.aborted || document.hidden || isRunning) return;
    isRunning = true;
    try {
      await work();
    } finally {
      isRunning = false;
      timer = setTimeout(turn, ms);
    }
  };
  document.addEventListener("visibilitychange", turn, { signal });
  signal?.addEventListener("abort", () => clearTimeout(timer));
  return turn();
}
