// Keeps the dashboard fresh. Without it, reload the page.
"use strict";
(() => {
  const live = document.getElementById("live");
  let version = live.dataset.version;
  let failed = 0;
  let fresh = new Date();
  const banner = document.getElementById("connection");
  const say = document.getElementById("say");
  const alarms = () => [...live.querySelectorAll(".alarm")].map((part) => part.textContent).join(" ");
  document.documentElement.classList.add("script");

  // Whoever is about to use something in it is not disturbed.
  const inUse = () => live.querySelector("details[open]") || (live.contains(document.activeElement) && !document.activeElement.matches(".scroll"));

  const refresh = async () => {
    if (!document.hidden && !inUse()) {
      try {
        const answer = await fetch(live.dataset.source, { headers: { "If-None-Match": `"${version}"`, "X-Fragment": "1" } });
        if (answer.status === 401) return location.reload();
        if (answer.status !== 200 && answer.status !== 304) throw new Error(answer.status);
        failed = 0;
        fresh = new Date();
        banner.hidden = true;
        if (answer.status === 200 && !inUse()) {
          const before = alarms();
          const places = [...live.querySelectorAll(".scroll")].map((part) => part.scrollLeft);
          live.innerHTML = await answer.text();
          version = (answer.headers.get("ETag") || "").replaceAll('"', "");
          live.querySelectorAll(".scroll").forEach((part, at) => (part.scrollLeft = places[at] || 0));
          if (alarms() !== before) say.textContent = alarms();
        }
      } catch {
        failed++;
        const text = `The server does not answer. This is how it stood at ${fresh.toLocaleTimeString()}.`;
        if (banner.hidden || banner.textContent !== text) banner.textContent = text;
        banner.hidden = false;
      }
    }
    setTimeout(refresh, Math.min(30, 2 * 2 ** failed) * 1000);
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const field = button.parentElement.querySelector("input");
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      say.textContent = "Copied.";
      button.textContent = "Copied";
      setTimeout(() => ((button.textContent = "Copy"), button.blur()), 1500);
    } catch {
      field.focus();
    }
  });

  setTimeout(refresh, 2000);
})();
