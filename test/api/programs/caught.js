// @ts-check
// A task whose attach() fails. It catches the error, and has nothing more to do.
import { attach } from "pamir";

await attach().then(
  () => console.log("attached"),
  (error) => console.log(JSON.stringify({ task: Number(process.env.PAMIR_RANK), code: error.code })),
);
