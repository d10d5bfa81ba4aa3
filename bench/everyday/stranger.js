// @ts-check
// Another program that computes all the time.
for (;;);
