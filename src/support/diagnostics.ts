// Node's diagnostics channels: what happens seldom is told to whoever has subscribed; elsewhere to nobody.
import { nodeModule } from "./host.js";

/** What we use of a channel. */
interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

const NOBODY: Channel = { hasSubscribers: false, publish: () => {} };

const channelOf = (name: string): Channel => nodeModule("diagnostics_channel")?.channel(`pamir:${name}`) ?? NOBODY;

/** The channels are named `pamir:…`; what each tells is in docs/seeing.md. */
export const diagnostics = {
  launch: channelOf("launch"),
  exit: channelOf("exit"),
  attach: channelOf("attach"),
  leave: channelOf("leave"),
  context: channelOf("context"),
  full: channelOf("full"),
  paused: channelOf("paused"),
  ended: channelOf("ended"),
};
