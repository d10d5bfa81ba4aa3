// @ts-check
// As first.js, without anything.
self.onmessage = ({ data: port }) => {
  port.onmessage = () => postMessage("came");
  port.postMessage(0);
};
