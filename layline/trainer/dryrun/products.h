// The working memory of matrix products. In bf16 libtorch leaves them to oneDNN, which asks the allocator for scratch
// memory: some of the bytes of a small run, and not seen on the meta device. After this, products on the meta device
// take it too, for as long as they would.
#pragma once

namespace layline::trainer::dryrun {

// Once a process is enough. How much a product takes is measured with a product on this machine and the calling
// thread's number of threads: one of the same size, or of large ones, whose scratch memory hardly grows any more, a
// smaller one. Needs loop::MemoryCounter, and installs it.
void take_scratch_in_products();

}  // namespace layline::trainer::dryrun
