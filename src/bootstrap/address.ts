// Where a server listens: "host:port", "192.0.2.1:7117", "[2001:db8::1]:7117".

export interface HostPort {
  /** A name or an address; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * The address in a text, or undefined if the text is no address. A host can't begin with "-", so that no program takes it for
 * an option.
 */
export function parseAddress(text: string): HostPort | undefined {
  const [, six, name, digits] =
    /^(?:\[([\da-fA-F:.]{2,45}(?:%\w+)?)\]|(\w[\w.-]{0,252})):([1-9]\d{0,4})$/.exec(text) ?? [];
  const port = Number(digits);
  const host = six ?? name;
  return host === undefined || port > 65535 || (six !== undefined && !six.includes(":")) ? undefined : { host, port };
}

/** The text of an address. */
export function addressText({ host, port }: HostPort): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
