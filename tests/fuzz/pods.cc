// What siding-runc and the agent say to each other of containers, what a container's description says, and
// the mounts in which its layer is found.
#include "agent/pods/container_files.h"
#include "agent/pods/messages.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  if (const auto starting = ParseStarting(text); starting.ok()) {
    const auto again = ParseStarting(ToText(*starting));
    fuzz::Expect(again.ok() && again->pod_uid == starting->pod_uid && again->name == starting->name &&
                     again->container.bundle == starting->container.bundle,
                 "a container that was read is read again");
  } else {
    const auto refused = ToText(absl::StatusOr<ContainerStart>(starting.status()));
    fuzz::Expect(refused.size() <= kMostPodsMessage, "a refusal fits into a message");
    fuzz::Expect(absl::IsFailedPrecondition(ParseStart(refused).status()), "a refusal is read as one");
  }
  if (const auto start = ParseStart(text); start.ok()) {
    const auto again = ParseStart(ToText(start));
    fuzz::Expect(again.ok() && again->image_folder == start->image_folder, "a start is read again");
  }
  if (const auto made = ParseMade(text); made.ok()) {
    fuzz::Expect(*made > 0 && ParseMade(ToText(made)).value_or(0) == *made, "a process is read again");
  }
  const auto failed = absl::StatusOr<pid_t>(absl::InternalError(text));
  fuzz::Expect(absl::IsAborted(ParseMade(ToText(failed)).status()), "a failure is read as one");
  if (const auto config = ParseContainerConfig("/bundle", text); config.ok()) {
    fuzz::Expect(!config->rootfs.empty() && config->rootfs[0] == '/', "a root is a path");
    for (const ContainerFolder& folder : config->folders) {
      fuzz::Expect(folder.file.find('/') == std::string::npos, "a file of the image is in it");
      fuzz::Expect(folder.folder[0] == '/', "a folder of the node is a path");
    }
  }
  if (const auto upper = UpperFolder(text, "/a"); upper.ok())
    fuzz::Expect((*upper)[0] == '/', "an upper folder is a path");
  return 0;
}
