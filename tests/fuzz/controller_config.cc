// sidingd's own file.
#include "controller/config.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const auto config = ParseControllerConfig(fuzz::TextOf(data, size), "sidingd.yaml");
  if (config.ok()) CheckListening(*config).IgnoreError();
  return 0;
}
