// Node's diagnostics channels report rare events to their subscribers. Other hosts have no channels.
import { nodeModule } from "./host.js";

/** The part of a channel that pamir uses. */
interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

const NOBODY: Channel = { hasSubscribers: false, publish: () => {} };

const channelOf = (name: string): Channel => nodeModule("diagnostics_channel")?.channel(`pamir:${name}`) ?? NOBODY;

/** The channels are named `pamir:…`; docs/seeing.md describes their events. */
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
