// What belongs to a container beside its processes: the layer that it writes to, its volumes that live only
// as long as its pod does, and its shared memory. Found by the runtime's own description of the container
// (config.json of the bundle, OCI runtime specification).
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding {

// A folder of this machine that belongs in the image.
struct ContainerFolder {
  std::string file;    // of the image: "rootfs.tar", "volume.NAME.tar", "dev-shm.tar"
  std::string folder;  // where its files are
};

// A volume that the kubelet writes: a config map, a secret, or what a pod is told of itself. Its files lie in
// a folder with a time in its name, which is another one in each pod; the link "..data" leads to it.
struct WrittenVolume {
  std::string destination;  // in the container, as the pod says it: "/var/run/x/"
  std::string folder;       // where its files are
  std::string seen;         // in the container, as its processes see it: "/run/x"
};

// What a bundle's config.json says of the container that matters here. kInvalidArgument names the field.
struct ContainerConfig {
  std::string rootfs;  // as a path
  bool read_only_root = false;
  bool has_terminal = false;
  std::string pod_uid;  // "": not a pod's
  std::string pod_space, pod_name;
  std::string name;                      // of the container in its pod
  bool is_sandbox = false;               // the one that only holds the pod's namespaces
  std::vector<ContainerFolder> folders;  // without the root file system's
  std::vector<WrittenVolume> written;
  std::vector<std::string>
      own_files;            // files of this pod alone, such as /etc/hosts: as its processes see them
  std::string cannot_save;  // why its files cannot be saved; empty: they can
  // Of its volumes only parts are mounted (subPath). Those that are emptyDirs are these folders, if they
  // exist.
  std::vector<std::string> parts_of;
};
absl::StatusOr<ContainerConfig> ParseContainerConfig(const std::string& bundle, const std::string& json);
absl::StatusOr<ContainerConfig> ReadContainerConfig(const std::string& bundle);

// The folder of the layer that an overlay writes to, by what /proc/self/mountinfo says of its mount point.
// kNotFound: it is not an overlay's.
absl::StatusOr<std::string> UpperFolder(const std::string& mountinfo, const std::string& mount_point);

// Whoever wrote the pod may have written paths with links and more slashes than there are. `root`: a path to
// the container's root folder, such as /proc/PID/root.
absl::Status SeeAsProcessesDo(ContainerConfig& config, const std::string& root);

// Why a process that has this file of the container open (a path as it sees it, or what /proc says in its
// place) could not have it in the next pod: "which is another file in each pod"; empty: nothing is known
// against it.
std::string WhyNotInNextPod(const ContainerConfig& config, const std::string& file);

// kFailedPrecondition: the container has files that would be missing in an image, as far as that is seen
// without reading them.
absl::Status CheckContainerFiles(const ContainerConfig& config);
// Into the folder of an image. Nothing may change meanwhile: the container is frozen. kAborted: `abandon` was
// set from another thread.
absl::Status SaveContainerFiles(const ContainerConfig& config, const std::string& image_folder,
                                const std::atomic<bool>* abandon = nullptr);
// Before the processes are restored into the container of this bundle. By a program without other threads.
absl::Status PutContainerFilesBack(const ContainerConfig& config, const std::string& image_folder);

}  // namespace siding
