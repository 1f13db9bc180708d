/* A browser starts no worker from a file: without a server, an iframe does the work of the search. */
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.appendChild(this.frame);
    addEventListener("message", (event) => {
      if (event.source !== this.frame.contentWindow) return;
      const told = new MessageEvent("message", { data: event.data });
      this.dispatchEvent(told);
      if (this.onmessage) this.onmessage(told);
    });
    const inside = this.frame.contentDocument;
    inside.open();
    inside.write(`<!doctype html><html><body><script>
      postMessage = (data) => parent.postMessage(data, "*");
      importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        document.body.appendChild(script);
      })), Promise.resolve());
    <\/script><script src="${url}"><\/script></body></html>`);
    inside.close();
  }

  postMessage(data) {
    const send = () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    if (this.frame.contentDocument.readyState === "complete") send();
    else this.frame.addEventListener("load", send, { once: true });
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
