// What the plugin in Slurm's processes is answered.
#include <cstring>

#include "spank/messages.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  // Of just that size, so that one byte too far is seen.
  char* const text = static_cast<char*>(std::malloc(size));
  if (size > 0) std::memcpy(text, data, size);
  spank::Answer answer;
  if (spank::ParseAnswer(text, size, answer)) {
    fuzz::Expect(std::strlen(answer.folder) < spank::kMaxPath && std::strlen(answer.reason) < spank::kMaxPath,
                 "texts end where they must");
  }
  std::free(text);
  return 0;
}
