/* What JupyterLab 4 leaves out, for those who listen to a page or read it in the dark theme.

   Pictures in outputs get their text/plain as alternative text. Sliders get their label as a name, and the value beside them
   in place of its number in the list. `course lab` loads this as it is: JupyterLab's own modules are handed to `init`. */

(() => {
  let shared;

  async function shareOf(name) {
    const [version] = Object.values(shared[name]);
    return (await version.get())();
  }

  /* Like the renderer that JupyterLab has for this kind of picture, with an alternative text. */
  function withWords(Renderer) {
    return class extends Renderer {
      async render(model) {
        await super.render(model);
        const words = String(model.data["text/plain"] ?? "").trim();
        for (const image of this.node.querySelectorAll("img")) image.alt = words;
      }
    };
  }

  const STYLE = `.jp-Notebook :is(.jp-RenderedMarkdown, .jp-RenderedHTMLCommon) a { text-decoration: underline; }
    body[data-jp-theme-light="false"] :is(.jp-RenderedImage, .jp-RenderedSVG, .jupyter-widgets) img {
    filter: invert(0.92) hue-rotate(180deg); border-radius: 4px; }`;

  function nameSlider(handle) {
    const slider = handle.closest(".widget-slider");
    if (!slider) return;
    const readout = slider.querySelector(".widget-readout"), label = slider.querySelector(".widget-label");
    const hidden = !readout || readout.style.display === "none"; // then a label beside the slider says the value
    const shown = hidden ? slider.parentElement?.querySelector(":scope > .widget-label") : readout;
    set(handle, "aria-label", label?.textContent.trim() || "Your prediction");
    if (shown?.textContent) set(handle, "aria-valuetext", shown.textContent);
  }

  function set(element, attribute, text) {
    if (element.getAttribute(attribute) !== text) element.setAttribute(attribute, text);
  }

  function changed(records) {
    for (const { type, target, addedNodes } of records) {
      if (type === "attributes") nameSlider(target);
      else if (target.matches?.(".widget-readout, .widget-label")) {
        target.parentElement?.querySelectorAll(".noUi-handle").forEach(nameSlider);
      } else for (const node of addedNodes) node.querySelectorAll?.(".noUi-handle").forEach(nameSlider);
    }
  }

  async function extension() {
    const { IRenderMimeRegistry, RenderedImage, RenderedSVG } = await shareOf("@jupyterlab/rendermime");
    const renderers = { "image/png": withWords(RenderedImage), "image/svg+xml": withWords(RenderedSVG) };
    const activate = (app, registry) => {
      for (const [mimeType, Renderer] of Object.entries(renderers)) {
        const own = { mimeTypes: [mimeType], createRenderer: (options) => new Renderer(options) };
        registry.addFactory({ ...registry.getFactory(mimeType), ...own }, registry.getRank(mimeType));
      }
      document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
      const watched = { subtree: true, childList: true, attributeFilter: ["aria-valuetext"] };
      new MutationObserver(changed).observe(document.body, watched);
    };
    const plugin = { id: "levels-accessibility:plugin", autoStart: true, requires: [IRenderMimeRegistry], activate };
    return () => ({ __esModule: true, default: plugin });
  }

  (window._JUPYTERLAB ??= {})["levels-accessibility"] = { init: (scope) => { shared = scope; }, get: extension };
})();
