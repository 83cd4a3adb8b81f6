// A magic link carries its key behind `#`, which browsers keep to themselves. It goes from there into the form, and out of the address.
"use strict";
(() => {
  const form = document.getElementById("enter"), field = document.getElementById("key");
  if (!form || !field) return;
  const enter = () => {
    const found = /[#&]key=([^&]+)/.exec(location.hash);
    if (!found) return;
    history.replaceState(null, "", location.pathname);
    field.value = decodeURIComponent(found[1]);
    form.requestSubmit();
  };
  addEventListener("hashchange", enter);
  enter();
})();
