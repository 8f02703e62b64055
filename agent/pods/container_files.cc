#include "agent/pods/container_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/pods/layer.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

using Json = nlohmann::json;

constexpr char kRootFile[] = "rootfs.tar";
constexpr char kSharedMemoryFile[] = "dev-shm.tar";
constexpr char kSharedMemory[] = "/dev/shm";
// In the kubelet's folder of the pod.
constexpr char kEmptyDir[] = "/volumes/kubernetes.io~empty-dir/";
// Of the volumes that it writes itself.
constexpr const char* kWritten[] = {"/volumes/kubernetes.io~configmap/", "/volumes/kubernetes.io~secret/",
                                    "/volumes/kubernetes.io~projected/",
                                    "/volumes/kubernetes.io~downward-api/"};
constexpr char kVersionLink[] = "..data";
constexpr char kVersionsFile[] =
    "versions.json";  // of the image: {"/etc/config": "..2026_05_01_12_00_00.123456789"}
constexpr char kSubPaths[] = "/volume-subpaths/";  // of any kind of volume: VOLUME/CONTAINER/NUMBER

const Json& At(const Json& json, std::initializer_list<const char*> path) {
  static const Json nothing;
  const Json* at = &json;
  for (const char* key : path) {
    const auto found = at->find(key);  // of what is no object nothing is found
    if (found == at->end()) return nothing;
    at = &*found;
  }
  return *at;
}
std::string TextAt(const Json& json, std::initializer_list<const char*> path) {
  const Json& found = At(json, path);
  return found.is_string() ? found.get<std::string>() : "";
}
bool TrueAt(const Json& json, std::initializer_list<const char*> path) {
  const Json& found = At(json, path);
  return found.is_boolean() && found.get<bool>();
}

// Of a folder that the kubelet makes for the files of a volume that it writes, which is no path.
bool IsVersion(const std::string& name) {
  return name.size() > 2 && name.size() < NAME_MAX && absl::StartsWith(name, "..") && name != kVersionLink &&
         !absl::StrContains(name, '/');
}

// What the container runtime says of the pod, by the name of containerd or else that of CRI-O.
std::string SaidOf(const Json& config, const char* containerd, const char* crio) {
  const std::string said = TextAt(config, {"annotations", containerd});
  return said.empty() ? TextAt(config, {"annotations", crio}) : said;
}

// ".../kubepods/besteffort/pod<uid>/<id>", or with systemd
// "kubepods-besteffort-pod<uid>.slice:cri-containerd:<id>", where the uid has '_' in place of '-'.
std::string PodUidOf(const std::string& cgroup) {
  if (!absl::StrContains(cgroup, "kubepods")) return "";
  for (const absl::string_view part : absl::StrSplit(cgroup, absl::ByAnyChar("/:"))) {
    absl::string_view name = part;
    if (absl::ConsumeSuffix(&name, ".slice")) {
      const size_t pod = name.rfind("-pod");
      if (pod != absl::string_view::npos) return absl::StrReplaceAll(name.substr(pod + 4), {{"_", "-"}});
    } else if (absl::ConsumePrefix(&name, "pod") && !name.empty()) {
      return std::string(name);
    }
  }
  return "";
}

// mountinfo has characters that would be taken for something else in octal.
std::string Unescape(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const absl::string_view digits = text.substr(i + 1, 3);
    const bool octal =
        digits.size() == 3 && absl::c_all_of(digits, [](char c) { return c >= '0' && c < '8'; });
    if (text[i] == '\\' && octal) {
      plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// The file that a container may write for the kubelet to read is in a folder of the container's.
bool IsOfThePodAlone(const std::string& source, const std::string& container) {
  return absl::EndsWith(source, "/etc-hosts") || absl::EndsWith(source, "/hostname") ||
         (!container.empty() && absl::StrContains(source, absl::StrCat("/containers/", container, "/")));
}

// The name of the volume of this kind, and what follows it, where it is the pod's own; "": it is none. Its
// user may have named a folder of the node alike, and what is in it is not to be written to.
std::string OwnVolume(const std::string& source, const std::string& pod_uid, const char* kind) {
  if (pod_uid.empty()) return "";
  const std::string folder = absl::StrCat("/pods/", pod_uid, kind);
  const size_t found = source.find(folder);
  return found == std::string::npos ? "" : source.substr(found + folder.size());
}

void AddMount(const Json& mount, ContainerConfig& config) {
  const std::string source = TextAt(mount, {"source"});
  if (!absl::StartsWith(source, "/")) return;  // made by the runtime, or not at all
  const std::string destination = TextAt(mount, {"destination"});
  for (const char* kind : kWritten) {
    const std::string name = OwnVolume(source, config.pod_uid, kind);
    if (name.empty()) continue;
    if (!absl::StrContains(name, '/')) config.written.push_back({destination, source, destination});
    return;
  }
  if (!absl::StrContains(source, "/volumes/") && IsOfThePodAlone(source, config.name))
    config.own_files.push_back(destination);
  if (absl::StrContains(source, kEmptyDir)) {
    const std::string name = OwnVolume(source, config.pod_uid, kEmptyDir);
    if (name.empty()) {
      config.cannot_save = absl::StrCat(source, " is no volume of the pod's, and named like one");
      return;
    }
    if (absl::StrContains(name, '/')) {
      config.cannot_save = absl::StrCat("a part of the volume ", name, " is mounted");
      return;
    }
    config.folders.push_back({absl::StrCat("volume.", name, ".tar"), source});
  } else if (const size_t part = source.find(kSubPaths); part != std::string::npos) {
    const absl::string_view rest = absl::string_view(source).substr(part + sizeof(kSubPaths) - 1);
    config.parts_of.push_back(
        absl::StrCat(source.substr(0, part), kEmptyDir, rest.substr(0, rest.find('/'))));
  } else if (destination == kSharedMemory) {
    if (source == kSharedMemory) {
      config.cannot_save = "its shared memory is that of the node (hostIPC)";
      return;
    }
    config.folders.push_back({kSharedMemoryFile, source});
  }
}

// The name of the folder that its files are in now; "": it has none that the kubelet would give it.
std::string VersionOf(const WrittenVolume& volume) {
  std::error_code error;
  const std::string target =
      std::filesystem::read_symlink(volume.folder + "/" + kVersionLink, error).string();
  return IsVersion(target) ? target : "";
}

// A path in that root as the kernel says it; as it is, if there is nothing.
std::string AsTheKernelSays(const std::string& path, const UniqueFd& root) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const UniqueFd file(static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
  if (!file.valid()) return path;
  const auto name_of = [](const UniqueFd& fd) {
    std::error_code error;
    return std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd.get()), error).string();
  };
  const std::string seen = name_of(file);
  absl::string_view within = seen;
  if (const std::string top = name_of(root); top != "/") absl::ConsumePrefix(&within, top);
  return std::string(within);
}

absl::Status SaveVersions(const ContainerConfig& config, const std::string& image_folder) {
  Json versions = Json::object();
  for (const WrittenVolume& volume : config.written) {
    const std::string version = VersionOf(volume);
    if (!version.empty()) versions[volume.destination] = version;
  }
  if (versions.empty()) return absl::OkStatus();
  return WriteFileAtomically(absl::StrCat(image_folder, "/", kVersionsFile), versions.dump());
}

// The folder that the container writes to.
absl::StatusOr<std::string> OwnLayer(const ContainerConfig& config) {
  SIDING_ASSIGN_OR_RETURN(const std::string mounts, ReadFile("/proc/self/mountinfo"));
  return UpperFolder(mounts, config.rootfs);
}

// What a process had open by the old name is found by it.
absl::Status NameOldVersions(const ContainerConfig& config, const std::string& image_folder) {
  const std::string file = absl::StrCat(image_folder, "/", kVersionsFile);
  if (access(file.c_str(), F_OK) != 0) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  const Json versions = Json::parse(text, nullptr, false);
  for (const WrittenVolume& volume : config.written) {
    const std::string version = TextAt(versions, {volume.destination.c_str()});
    if (!IsVersion(version) || VersionOf(volume).empty()) continue;
    const std::string name = absl::StrCat(volume.folder, "/", version);
    // It is there when the pod is one that has been restored before, or has the same one.
    if (symlink(kVersionLink, name.c_str()) != 0 && errno != EEXIST) return ErrnoError(errno, name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ContainerConfig> ParseContainerConfig(const std::string& bundle, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object())
    return absl::InvalidArgumentError(bundle + "/config.json: expected an object of JSON");
  ContainerConfig config;
  const std::string root = TextAt(json, {"root", "path"});
  if (root.empty()) return absl::InvalidArgumentError(bundle + "/config.json: root.path: expected a path");
  config.rootfs = root[0] == '/' ? root : bundle + "/" + root;
  config.read_only_root = TrueAt(json, {"root", "readonly"});
  config.has_terminal = TrueAt(json, {"process", "terminal"});
  config.pod_space = SaidOf(json, "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace");
  config.pod_name = SaidOf(json, "io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name");
  config.pod_uid = SaidOf(json, "io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid");
  config.name = SaidOf(json, "io.kubernetes.cri.container-name", "io.kubernetes.container.name");
  config.is_sandbox =
      SaidOf(json, "io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType") == "sandbox";
  // Earlier versions of containerd do not say it.
  if (config.pod_uid.empty()) config.pod_uid = PodUidOf(TextAt(json, {"linux", "cgroupsPath"}));
  for (const Json& mount : At(json, {"mounts"})) AddMount(mount, config);
  return config;
}

absl::StatusOr<ContainerConfig> ReadContainerConfig(const std::string& bundle) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(bundle + "/config.json"));
  return ParseContainerConfig(bundle, text);
}

absl::StatusOr<std::string> UpperFolder(const std::string& mountinfo, const std::string& mount_point) {
  std::string upper;  // of the last one: it lies over those before
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<absl::string_view> first = absl::StrSplit(halves[0], ' ');
    if (halves.size() != 2 || first.size() < 5 || Unescape(first[4]) != mount_point) continue;
    const std::vector<absl::string_view> second = absl::StrSplit(halves[1], ' ');
    upper.clear();
    if (second.size() < 3 || second[0] != "overlay") continue;
    for (const absl::string_view option : absl::StrSplit(second[2], ',')) {
      absl::string_view value = option;
      if (absl::ConsumePrefix(&value, "upperdir=")) upper = Unescape(value);
    }
  }
  if (upper.empty() || upper[0] != '/')
    return absl::NotFoundError(absl::StrCat("what the container writes cannot be told from its image: ",
                                            mount_point, " is not an overlay whose upper folder is known"));
  return upper;
}

absl::Status CheckContainerFiles(const ContainerConfig& config) {
  if (!config.cannot_save.empty()) return absl::FailedPreconditionError(config.cannot_save);
  for (const std::string& volume : config.parts_of) {
    if (access(volume.c_str(), F_OK) == 0)
      return absl::FailedPreconditionError(absl::StrCat(
          "a part of the volume ", volume.substr(volume.rfind('/') + 1), " is mounted (subPath)"));
  }
  return config.read_only_root ? absl::OkStatus() : OwnLayer(config).status();
}

absl::Status SeeAsProcessesDo(ContainerConfig& config, const std::string& root) {
  const UniqueFd folder(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return ErrnoError(errno, root);
  for (WrittenVolume& volume : config.written) volume.seen = AsTheKernelSays(volume.destination, folder);
  for (std::string& file : config.own_files) file = AsTheKernelSays(file, folder);
  return absl::OkStatus();
}

std::string WhyNotInNextPod(const ContainerConfig& config, const std::string& file) {
  absl::string_view path = file;
  const bool deleted = absl::ConsumeSuffix(&path, " (deleted)");
  if (absl::c_linear_search(config.own_files, path)) return "which is another file in each pod";
  for (const WrittenVolume& volume : config.written) {
    absl::string_view rest = path;
    if (!absl::ConsumePrefix(&rest, volume.seen + "/")) continue;
    const std::string version(rest.substr(0, rest.find('/')));
    if (deleted || (IsVersion(version) && version != VersionOf(volume)))
      return "which has been written anew since";
  }
  return "";
}

absl::Status SaveContainerFiles(const ContainerConfig& config, const std::string& image_folder,
                                const std::atomic<bool>* abandon) {
  SIDING_RETURN_IF_ERROR(CheckContainerFiles(config));
  if (!config.read_only_root) {
    SIDING_ASSIGN_OR_RETURN(const std::string upper, OwnLayer(config));
    SIDING_RETURN_IF_ERROR(SaveLayer(upper, absl::StrCat(image_folder, "/", kRootFile), abandon));
  }
  for (const ContainerFolder& one : config.folders)
    SIDING_RETURN_IF_ERROR(SaveLayer(one.folder, absl::StrCat(image_folder, "/", one.file), abandon));
  return SaveVersions(config, image_folder);
}

absl::Status PutContainerFilesBack(const ContainerConfig& config, const std::string& image_folder) {
  const auto put = [&](const std::string& file, const std::string& folder) {
    const std::string archive = absl::StrCat(image_folder, "/", file);
    return access(archive.c_str(), F_OK) == 0 ? PutLayerBack(archive, folder) : absl::OkStatus();
  };
  SIDING_RETURN_IF_ERROR(put(kRootFile, config.rootfs));
  for (const ContainerFolder& one : config.folders) SIDING_RETURN_IF_ERROR(put(one.file, one.folder));
  return NameOldVersions(config, image_folder);
}

}  // namespace siding
