// Makes the voting page answer in place. Everything here is a form that works without it.
"use strict";
(() => {
  const main = document.getElementById("main");
  const banner = document.getElementById("connection");
  const say = document.getElementById("say");
  const wait = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let busy = false;
  let unsaved = false;
  let looking = 0;

  document.documentElement.classList.add("script");
  const stage = () => document.getElementById("stage");

  const warn = (text) => {
    banner.textContent = text || "";
    banner.hidden = !text;
  };

  // Send a form until the server has it. The same answer sent twice counts once, so trying again is safe.
  const send = async (form, button) => {
    const fields = new URLSearchParams(new FormData(form));
    if (button && button.name) fields.set(button.name, button.value);
    for (let attempt = 0; ; attempt++) {
      let pause = Math.min(8, 0.5 * 2 ** attempt);
      try {
        const answer = await fetch(form.action, {
          method: "POST",
          body: fields,
          headers: { "X-Fragment": "1" },
          redirect: "error",
          signal: AbortSignal.timeout(15000),
        });
        if (answer.ok) return await answer.text();
        if (answer.status === 429) pause = Number(answer.headers.get("Retry-After")) || 1;
        else if (answer.status < 500) return location.reload();
        warn(answer.status === 429 ? "One moment …" : `The server is busy. ${unsaved ? "Your answer is not saved yet; t" : "T"}rying again …`);
      } catch {
        warn(`No connection. ${unsaved ? "Your answer is not saved yet; t" : "T"}rying again …`);
      }
      await Promise.race([wait(pause), new Promise((on) => addEventListener("online", on, { once: true }))]);
    }
  };

  const swap = (text) => {
    const parsed = new DOMParser().parseFromString(text, "text/html").getElementById("stage");
    if (!parsed) return location.reload();
    const before = stage().dataset.stage;
    const held = stage().contains(document.activeElement) && document.activeElement.form;
    stage().replaceWith(document.adoptNode(parsed));
    const now = stage();
    if (now.dataset.stage === "pair" || before !== now.dataset.stage) {
      document.getElementById("question").focus({ preventScroll: true });
      scrollTo({ top: 0, behavior: "instant" });
    } else if (held) {
      const form = [...now.querySelectorAll("form")].find((other) => other.action === held.action);
      if (form) form.querySelector("button").focus({ preventScroll: true });
    }
    const notice = now.querySelector(".notice");
    if (now.dataset.stage === "pair")
      say.textContent = (notice ? notice.textContent + " " : "") + `Next pair. ${now.dataset.answered} answered.`;
    look();
  };

  const act = async (form, button) => {
    if (busy) return;
    busy = true;
    unsaved = Boolean(button && button.name === "verdict");
    stage().setAttribute("aria-busy", "true");
    if (unsaved) {
      stage().dataset.chosen = button.value;
      if (!calm.matches) await wait(0.12);
    }
    const text = await send(form, button);
    unsaved = false;
    warn("");
    if (text !== undefined) swap(text);
    busy = false;
  };

  // While there is no pair, look for one now and then.
  const look = () => {
    clearTimeout(looking);
    const again = document.getElementById("again");
    if (again) looking = setTimeout(() => (document.hidden ? look() : act(again)), 3000);
  };

  // The second half of a double click would land on the next pair, which nobody has seen yet.
  document.addEventListener("click", (event) => {
    if (event.detail > 1 && event.target.closest("[name=verdict]")) event.preventDefault();
  });

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-swap]")) return;
    event.preventDefault();
    act(event.target, event.submitter);
  });

  const press = (selector) => {
    const button = document.querySelector(selector);
    if (button && !button.disabled && !busy) button.form.requestSubmit(button);
  };

  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const at = event.target;
    if (at.matches("input, textarea, select")) return;
    const inside = at.closest("a, button, pre, summary");
    const scrolls = document.documentElement.scrollHeight > innerHeight + 1;
    const sideways = inside && inside.matches("pre") && inside.scrollWidth > inside.clientWidth;
    let target = null;
    if (event.key === "ArrowLeft" && !sideways) target = "[name=verdict][value=first]";
    else if (event.key === "ArrowRight" && !sideways) target = "[name=verdict][value=second]";
    else if (event.key === "ArrowDown" && !scrolls) target = "[name=verdict][value=tie]";
    else if (event.key === " " && !inside) target = "[name=verdict][value=tie]";
    else if (event.key === "u" || event.key === "Backspace") target = "#undo";
    if (!target || !document.querySelector(target)) return;
    event.preventDefault();
    press(target);
  });

  addEventListener("beforeunload", (event) => {
    if (unsaved && !banner.hidden) event.preventDefault();
  });

  look();
})();
