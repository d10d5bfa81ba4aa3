// @ts-check
throw new TypeError("thrown while loading");
