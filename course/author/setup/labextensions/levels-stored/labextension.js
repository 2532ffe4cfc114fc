/* A widget ends with its kernel. A notebook that is opened again would show "Error displaying widget: model not found".

   The picture or the text of the widget is stored in the same output, so that is shown in its place. And when a reader
   commits an answer, whose widget becomes text, the keys go on with the next cell. `course lab` loads this as it is:
   JupyterLab's own modules are handed to `init`. */

(() => {
  const WIDGET = "application/vnd.jupyter.widget-view+json";
  const ENDED = ".jupyter-widgets-disconnected"; // the class of a widget whose kernel has ended
  const LATE = 300; // ms: a widget that lives is there by then
  const AGAIN = "This is what was stored. Run the cell again to use it.";
  let shared;

  async function shareOf(name) {
    const [version] = Object.values(shared[name]);
    return (await version.get())();
  }

  /* The same output without its widget, drawn by the renderer that comes next; null if nothing else is stored. */
  async function drawn(registry, { data: { [WIDGET]: widget, ...data }, metadata, trusted }, MimeModel) {
    const type = registry.preferredMimeType(data, trusted ? "any" : "ensure");
    if (!type) return null;
    const renderer = registry.createRenderer(type);
    await renderer.renderModel(new MimeModel({ data, metadata, trusted }));
    const again = Object.assign(document.createElement("p"), { textContent: AGAIN });
    again.style.fontStyle = "italic";
    renderer.node.append(again);
    return renderer.node;
  }

  /* A renderer of widgets that shows what is stored while there is no widget to show. */
  function withStored(renderer, registry, MimeModel) {
    const render = renderer.renderModel;
    const lives = () => renderer.widgets.some((each) => !each.isDisposed && !each.node.matches(ENDED));

    async function show(model) {
      if (renderer.isDisposed || lives()) return;
      const stored = await drawn(registry, model, MimeModel);
      if (!stored || lives()) return;
      renderer.show();
      renderer.removeClass("jupyter-widgets");
      for (const each of renderer.widgets) each.hide();
      renderer.node.replaceChildren(...renderer.widgets.map((each) => each.node), stored);
    }

    renderer.renderModel = async (model) => {
      const late = setTimeout(show, LATE, model);
      await render.call(renderer, model);
      clearTimeout(late);
      await show(model);
      for (const each of renderer.widgets) {
        each.disposed.connect(() => show(model));
        new MutationObserver(() => show(model)).observe(each.node, { attributeFilter: ["class"] });
      }
    };
    return renderer;
  }

  /* When the widget in which a reader commits an answer has become text: the next cell is the one to run. */
  function followed(renderer, commands) {
    let cell = null; // the cell in whose widget somebody clicked or typed
    renderer.node.addEventListener("focusin", () => { cell = renderer.node.closest(".jp-Cell"); });
    renderer.disposed.connect(() => setTimeout(() => {
      const committed = cell?.isConnected && document.activeElement === document.body;
      if (committed && cell.querySelector("[data-question]")) commands.execute("notebook:move-cursor-down");
    }));
    return renderer;
  }

  async function extension() {
    const { RenderMimeRegistry, MimeModel } = await shareOf("@jupyterlab/rendermime");
    const activate = ({ commands }) => {
      /* Each notebook has a registry of its own, to which the renderer of widgets is added when its kernel is ready. */
      const create = RenderMimeRegistry.prototype.createRenderer;
      RenderMimeRegistry.prototype.createRenderer = function (type) {
        const renderer = create.call(this, type);
        return type === WIDGET ? followed(withStored(renderer, this, MimeModel), commands) : renderer;
      };
    };
    return () => ({ __esModule: true, default: { id: "levels-stored:plugin", autoStart: true, activate } });
  }

  (window._JUPYTERLAB ??= {})["levels-stored"] = { init: (scope) => { shared = scope; }, get: extension };
})();
