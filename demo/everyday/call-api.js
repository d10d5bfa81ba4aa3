// @ts-check
// The function that is called by name, by each way.

/** An ordinary value. */
export const ORDER = { name: "wave", at: 3, tags: ["deep", "slow"], isPaid: false };

export const api = {
  /** @param {typeof ORDER} order */
  accept: (order) => ({ ...order, isPaid: true }),
};
