// CRIU's pagemap-*.img, which comes from a tier that others may write to.
#include "agent/memory/pagemap.h"

#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const auto pagemap = ParsePagemap(fuzz::TextOf(data, size));
  if (!pagemap.ok()) return 0;
  uint64_t after = 0;
  for (const PageRun& run : pagemap->runs) {
    fuzz::Expect(run.address >= after && run.end() > run.address, "pages come in order, and no run is empty");
    after = run.end();
  }
  // A count that 32 bits do not hold is of a map that has 64 for it.
  fuzz::Expect(ParsePagemap(PagemapText(*pagemap)) == pagemap, "what was read is written the same");
  return 0;
}
