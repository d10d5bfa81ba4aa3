// The workspace: a region of a proxy's task, where it does what other tasks' descriptors say.
import { BLOCK_WINDOWS_OFFSET, SLICE_BYTES, WINDOW_SIZE } from "../../../assembly/layout.js";

//     0  descriptor  one that another task has sent
//   256  window      stands for another task's, while a chain is written: where in a block it may lie
//  2048  slice       bytes of that descriptor
export const WORKSPACE_WINDOW_OFFSET = BLOCK_WINDOWS_OFFSET;
export const WORKSPACE_SLICE_OFFSET = WORKSPACE_WINDOW_OFFSET + WINDOW_SIZE;
export const WORKSPACE_BYTES = WORKSPACE_SLICE_OFFSET + SLICE_BYTES;
