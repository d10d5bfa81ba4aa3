// Limits of messages, as the API names them.
export {
  DISPATCH_ID_MAX,
  RECV_IMMEDIATE_MAX,
  SEND_IMMEDIATE_MAX,
} from "../../assembly/layout.js";
