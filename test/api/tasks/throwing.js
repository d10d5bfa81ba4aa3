// @ts-check
// The callbacks of a task throw where nobody catches.
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
context.post(() => {
  throw new SyntaxError("thrown in posted work");
});
context.advance();
