// @ts-check
// As STAMP of task.js, by postMessage.
self.onmessage = ({ data: { count } }) => {
  for (let i = 0; i < count; i++) {
    const end = performance.now() + 5 + (i % 7);
    while (performance.now() < end);
    postMessage(performance.timeOrigin + performance.now());
  }
};
