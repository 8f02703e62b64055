// The dump of a pod's container, in two phases as of any task (docs/design/README.md, "A checkpoint in two
// phases"). Here the container stays frozen from before the first byte until its pod is removed or, if it is
// not to leave, until it is resumed: nothing of it runs behind its image.
#pragma once

#include <atomic>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "agent/checkpoint/dump.h"
#include "agent/pods/container_runtime.h"
#include "store/store.h"

namespace siding {

struct PodDumpPlan {
  ImageKey key;
  ContainerRef container;  // paused
  DumpingCriu criu;        // that its runtime runs
  std::string work_folder;
  std::map<std::string, std::string> metadata;
  Duration commit_patience{0};  // see CommitPatience() in agent/checkpoint/dump_steps.h
};

// Blocks until it is decided. OK: the image is visible. Otherwise no draft is left, and the container is
// paused as before, unless CRIU had to be ended by force. `abandon`, set from another thread, has CRIU ended.
absl::Status RunPodDump(ContainerRuntime& runtime, ImageStore& store, const PodDumpPlan& plan,
                        DumpObserver& observer, const std::atomic<bool>& abandon);

// What can be seen of a container to make its dump fail, or each restore, beside what
// agent/checkpoint/precheck.h says of its processes; empty texts: nothing is known of the kind.
struct ContainerHindrances {
  std::string lasting;  // it has that for as long as it lives
  std::string passing;  // a process has it, and may let go of it at any time
};
// Of a container that runs or is paused, by its bundle and its first process.
ContainerHindrances FindContainerHindrances(const std::string& bundle, pid_t init);

// Pauses the container when its processes have read what has come to them, which no image has: if not, they
// run on for a moment, some times. One that was paused before stays so: then it is told that it has to run.
absl::Status PauseWithNothingQueued(ContainerRuntime& runtime, const ContainerRef& container,
                                    bool was_paused);

}  // namespace siding
