// @ts-check
// As first.js, without anything.
onmessage = ({ data: port }) => {
  port.onmessage = () => postMessage("came");
  port.postMessage(0);
};
