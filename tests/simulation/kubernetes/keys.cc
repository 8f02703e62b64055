#include "tests/simulation/kubernetes/keys.h"

#include <sodium.h>

#include <cstdlib>

#include "tests/simulation/random.h"

namespace siding::simulation::pods {
namespace {

Random& Source() {
  static Random source(0);
  return source;
}

void Fill(void* const bytes, const size_t size) {
  for (size_t i = 0; i < size; ++i)
    static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(Source().Next());
}

randombytes_implementation implementation{
    .implementation_name = [] { return "the simulation's"; },
    .random = [] { return static_cast<uint32_t>(Source().Next()); },
    .stir = nullptr,
    .uniform = nullptr,
    .buf = Fill,
    .close = nullptr,
};

}  // namespace

void DrawKeysFrom(uint64_t seed) {
  randombytes_set_implementation(&implementation);
  if (sodium_init() < 0) std::abort();  // the first time it draws some itself
  Source() = Random(seed);
}

}  // namespace siding::simulation::pods
