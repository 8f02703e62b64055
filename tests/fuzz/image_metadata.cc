// What an image says of its task: open files, what else must be there, and pipes.
#include "agent/checkpoint/open_files.h"
#include "agent/checkpoint/stdio.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  if (const auto files = OpenFilesFromJson(text); files.ok()) {
    for (const OpenFile& file : *files) {
      JudgeFile(file, {.exists = true, .regular = true, .size = 7, .mtime_ns = 7}).status().IgnoreError();
    }
    fuzz::Expect(OpenFilesFromJson(OpenFilesToJson(*files)).ok(), "a list that was written is read");
  }
  if (const auto held = HeldFromJson(text); held.ok()) {
    fuzz::Expect(*HeldFromJson(HeldToJson(*held)) == *held, "what is needed is read as it was written");
  }
  if (const auto pipes = PipesFromText(text); pipes.ok()) {
    fuzz::Expect(*PipesFromText(PipesToText(*pipes)) == *pipes,
                 "pipes that were written are read as the same");
  }
  return 0;
}
