// manifest.json and the names of folders in the store of checkpoints.
#include "store/layout.h"
#include "store/manifest.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  const auto manifest = store::ParseManifest(text);
  if (manifest.ok()) {
    fuzz::Expect(manifest->TotalSize().value >= 0, "sizes can be added up");
    fuzz::Expect(store::ParseManifest(*store::ManifestToText(*manifest)).ok(),
                 "what was read can be written");
  }
  const size_t slash = text.find('/');
  if (slash != std::string::npos) {
    if (const auto key = store::KeyOfFolders(text.substr(0, slash), text.substr(slash + 1)))
      fuzz::Expect(store::CheckKey(*key).ok(), "a folder's key is a key");
  }
  return 0;
}
