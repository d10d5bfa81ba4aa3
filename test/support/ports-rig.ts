// Four nodes in one thread, whose links are ports: for the conformance suite of links.
import { PortsLink } from "../../src/link/ports-link.js";

/** @param delay calls its argument, now or later: then a channel's other end reaches its node */
export function portsRig(delay: (accept: () => void) => void, settle: () => Promise<void>) {
  const addresses = ["a", "b", "c", "d"];
  const links: PortsLink[] = addresses.map(
    (own) =>
      new PortsLink((to, port) => {
        const other = links[addresses.indexOf(to)];
        if (other === undefined) port.close();
        else delay(() => other.accept(own, port));
      }),
  );
  return { links, addresses, unknown: ["", "e", "A"], refuses: false, hasFaults: false, settle };
}
