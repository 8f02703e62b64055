#include "agent/pods/container_files.h"

#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/private_mounts_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr char kUid[] = "5b5e07db-f1b9-4530-81ef-b7d04d66b83e";

ContainerConfig Parsed(const std::string& json) {
  const auto config = ParseContainerConfig("/bundle", json);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(ContainerConfig());
}
ContainerConfig WithAnnotations(const std::string& annotations) {
  return Parsed(absl::StrCat(R"({"root": {"path": "rootfs"}, "annotations": {)", annotations, "}}"));
}
ContainerConfig WithCgroup(const std::string& path) {
  return Parsed(absl::StrCat(R"({"root": {"path": "rootfs"}, "linux": {"cgroupsPath": ")", path, R"("}})"));
}
std::string Mount(const std::string& destination, const std::string& source) {
  return absl::StrCat(R"({"destination": ")", destination, R"(", "type": "bind", "source": ")", source,
                      R"("})");
}
// Of the pod whose folder it is.
std::string UidIn(const std::string& source) {
  const size_t begin = source.find("/pods/");
  if (begin == std::string::npos) return "u";
  return source.substr(begin + 6, source.find('/', begin + 6) - begin - 6);
}
std::string WithMount(const std::string& destination, const std::string& source, const std::string& uid) {
  return absl::StrCat(R"({"root": {"path": "rootfs", "readonly": true}, "annotations": {)",
                      R"("io.kubernetes.cri.sandbox-uid": ")", uid, R"("}, "mounts": [)",
                      Mount("/etc/hosts", absl::StrCat("/var/lib/kubelet/pods/", uid, "/etc-hosts")), ", ",
                      Mount(destination, source), "]}");
}
std::string WithMount(const std::string& destination, const std::string& source) {
  return WithMount(destination, source, UidIn(source));
}
std::string Why(const absl::Status& status) {
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  return std::string(status.message());
}

TEST(ContainerConfig, ContainerdSaysWhoseItIs) {
  const ContainerConfig config = WithAnnotations(R"(
      "io.kubernetes.cri.container-name": "main", "io.kubernetes.cri.container-type": "container",
      "io.kubernetes.cri.sandbox-id": "2f8ce2bd", "io.kubernetes.cri.sandbox-name": "a-pod",
      "io.kubernetes.cri.sandbox-namespace": "a-space",
      "io.kubernetes.cri.sandbox-uid": "5b5e07db-f1b9-4530-81ef-b7d04d66b83e")");
  EXPECT_EQ(config.pod_uid, kUid);
  EXPECT_EQ(config.pod_space, "a-space");
  EXPECT_EQ(config.pod_name, "a-pod");
  EXPECT_EQ(config.name, "main");
  EXPECT_FALSE(config.is_sandbox);
}

TEST(ContainerConfig, CriOSaysWhoseItIs) {
  const ContainerConfig config = WithAnnotations(R"(
      "io.container.manager": "cri-o", "io.kubernetes.container.name": "main",
      "io.kubernetes.cri-o.ContainerType": "container", "io.kubernetes.pod.name": "a-pod",
      "io.kubernetes.pod.namespace": "a-space",
      "io.kubernetes.pod.uid": "5b5e07db-f1b9-4530-81ef-b7d04d66b83e")");
  EXPECT_EQ(config.pod_uid, kUid);
  EXPECT_EQ(config.pod_space, "a-space");
  EXPECT_EQ(config.pod_name, "a-pod");
  EXPECT_EQ(config.name, "main");
  EXPECT_FALSE(config.is_sandbox);
}

TEST(ContainerConfig, WhatHoldsThePodsNamespacesIsTold) {
  EXPECT_TRUE(WithAnnotations(R"("io.kubernetes.cri.container-type": "sandbox")").is_sandbox);
  EXPECT_TRUE(WithAnnotations(R"("io.kubernetes.cri-o.ContainerType": "sandbox")").is_sandbox);
}

TEST(ContainerConfig, WithoutAnAnnotationThePodIsKnownByItsCgroup) {
  EXPECT_EQ(WithCgroup(absl::StrCat("/kubepods/pod", kUid, "/438e2ba9")).pod_uid, kUid);
  EXPECT_EQ(WithCgroup(absl::StrCat("/kubepods/besteffort/pod", kUid, "/438e2ba9")).pod_uid, kUid);
  EXPECT_EQ(WithCgroup(absl::StrCat("/a/b/kubepods/burstable/pod", kUid, "/crio-438e2ba9")).pod_uid, kUid);
}

TEST(ContainerConfig, SystemdsNamesOfCgroupsAreRead) {
  EXPECT_EQ(
      WithCgroup("kubepods-besteffort-pod5b5e07db_f1b9_4530_81ef_b7d04d66b83e.slice:cri-containerd:438e2ba9")
          .pod_uid,
      kUid);
  EXPECT_EQ(WithCgroup("kubepods-pod5b5e07db_f1b9_4530_81ef_b7d04d66b83e.slice:crio:438e2ba9").pod_uid, kUid);
}

TEST(ContainerConfig, StaticPodsHaveUidsOfAnotherForm) {
  EXPECT_EQ(WithCgroup("/kubepods/burstable/pod7b1d3a2c9e8f/438e2ba9").pod_uid, "7b1d3a2c9e8f");
}

TEST(ContainerConfig, OthersContainersAreNoPods) {
  for (const char* cgroup :
       {"", "/docker/438e2ba9", "/podman/438e2ba9", "/pods/438e2ba9", "system.slice:docker:438e2ba9",
        "machine-podx.slice:libpod:438e2ba9", "/kubepods/besteffort/438e2ba9"})
    EXPECT_EQ(WithCgroup(cgroup).pod_uid, "") << cgroup;
}

TEST(ContainerConfig, TheRootIsInTheBundleOrWhereItSays) {
  EXPECT_EQ(Parsed(R"({"root": {"path": "rootfs"}})").rootfs, "/bundle/rootfs");
  EXPECT_EQ(Parsed(R"({"root": {"path": "/overlay/merged"}})").rootfs, "/overlay/merged");
}

TEST(ContainerConfig, ARootThatIsReadOnlyAndATerminalAreTold) {
  const ContainerConfig config =
      Parsed(R"({"root": {"path": "rootfs", "readonly": true}, "process": {"terminal": true}})");
  EXPECT_TRUE(config.read_only_root);
  EXPECT_TRUE(config.has_terminal);
  EXPECT_FALSE(Parsed(R"({"root": {"path": "rootfs"}})").read_only_root);
  EXPECT_FALSE(Parsed(R"({"root": {"path": "rootfs"}})").has_terminal);
}

TEST(ContainerConfig, EmptyDirsBelongInTheImage) {
  const std::string volume = "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/scratch";
  const ContainerConfig config = Parsed(WithMount("/scratch", volume));
  ASSERT_EQ(config.folders.size(), 1u);
  EXPECT_EQ(config.folders[0].file, "volume.scratch.tar");
  EXPECT_EQ(config.folders[0].folder, volume);
}

TEST(ContainerConfig, SharedMemoryBelongsInTheImage) {
  const ContainerConfig config = Parsed(WithMount("/dev/shm", "/run/containerd/sandboxes/2f8c/shm"));
  ASSERT_EQ(config.folders.size(), 1u);
  EXPECT_EQ(config.folders[0].file, "dev-shm.tar");
  EXPECT_EQ(config.folders[0].folder, "/run/containerd/sandboxes/2f8c/shm");
}

// The runtime dumps it itself.
TEST(ContainerConfig, SharedMemoryOfTheContainersOwnDoesNot) {
  EXPECT_TRUE(Parsed(WithMount("/dev/shm", "shm")).folders.empty());
}

TEST(ContainerConfig, WhatIsNoPathIsNoFolder) {
  const ContainerConfig config = Parsed(WithMount("/x", "pods/u/volumes/kubernetes.io~empty-dir/scratch"));
  EXPECT_TRUE(config.folders.empty());
  EXPECT_TRUE(CheckContainerFiles(config).ok());
}

TEST(ContainerConfig, OtherVolumesDoNot) {
  for (const char* source : {"/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/data/mount", "/data",
                             "/var/lib/kubelet/pods/u/volumes/kubernetes.io~projected/token"}) {
    const ContainerConfig config = Parsed(WithMount("/data", source));
    EXPECT_TRUE(config.folders.empty()) << source;
    EXPECT_TRUE(CheckContainerFiles(config).ok()) << source;
  }
}

TEST(ContainerConfig, WhatIsNoDescriptionIsRefusedWithTheFieldsName) {
  for (const char* json : {"", "{", "[]", "null", "{}", R"({"root": {}})", R"({"root": []})",
                           R"({"root": {"path": 1}})", R"({"root": "rootfs"})"}) {
    const auto config = ParseContainerConfig("/bundle", json);
    EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << json;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr("/bundle/config.json")) << json;
  }
}

TEST(ContainerConfig, FieldsOfAnotherTypeAreTakenForAbsent) {
  for (const char* more :
       {R"("annotations": [])", R"("annotations": {"io.kubernetes.pod.uid": 7})", R"("linux": [1])",
        R"("linux": {"cgroupsPath": {}})", R"("mounts": {"a": 1})", R"("mounts": [1, [], {"source": 1}])",
        R"("mounts": "x")", R"("process": [{"terminal": true}])"}) {
    const ContainerConfig config = Parsed(absl::StrCat(R"({"root": {"path": "rootfs"}, )", more, "}"));
    EXPECT_EQ(config.pod_uid, "") << more;
    EXPECT_TRUE(config.folders.empty()) << more;
    EXPECT_FALSE(config.has_terminal) << more;
  }
}

TEST(ContainerConfig, ABundleWithoutOneIsNamed) {
  const auto config = ReadContainerConfig("/no/such/bundle");
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("/no/such/bundle/config.json"));
}

class ContainerFiles : public ::testing::Test {
 protected:
  ContainerFiles() {
    char name[] = "/tmp/siding-files-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ContainerFiles() override { std::filesystem::remove_all(folder_); }
  std::string Folder(const std::string& name) const {
    std::filesystem::create_directories(folder_ + "/" + name);
    return folder_ + "/" + name;
  }
  std::string folder_;
};

// Where the kubelet says so of itself, which a container runtime does not see.
TEST_F(ContainerFiles, APartOfAnEmptyDirIsRefusedByItsName) {
  EXPECT_THAT(Why(CheckContainerFiles(
                  Parsed(WithMount("/x", "/kubelet/pods/u/volumes/kubernetes.io~empty-dir/scratch/x")))),
              HasSubstr("scratch/x"));
  Folder("pods/u/volumes/kubernetes.io~empty-dir/scratch");
  const std::string part = Folder("pods/u/volume-subpaths/scratch/main/0");
  EXPECT_THAT(Why(CheckContainerFiles(Parsed(WithMount("/x", part)))), HasSubstr("volume scratch "));
}

TEST_F(ContainerFiles, APartOfAnotherVolumeIsNotOurs) {
  Folder("pods/u/volumes/kubernetes.io~csi/data/mount");
  const std::string part = Folder("pods/u/volume-subpaths/data/main/0");
  const ContainerConfig config = Parsed(WithMount("/x", part));
  EXPECT_TRUE(CheckContainerFiles(config).ok());
  EXPECT_TRUE(config.folders.empty());
}

TEST_F(ContainerFiles, TheSharedMemoryOfTheNodeIsRefused) {
  const ContainerConfig config = Parsed(WithMount("/dev/shm", "/dev/shm"));
  EXPECT_TRUE(config.folders.empty());
  EXPECT_THAT(Why(CheckContainerFiles(config)), HasSubstr("hostIPC"));
}

TEST_F(ContainerFiles, WhatCannotBeSavedLeavesNothing) {
  ContainerConfig config = Parsed(WithMount("/dev/shm", Folder("shm")));
  config.cannot_save = "for a reason";
  const std::string image = Folder("image");
  EXPECT_EQ(Why(SaveContainerFiles(config, image)), "for a reason");
  EXPECT_TRUE(std::filesystem::is_empty(image));
}

TEST_F(ContainerFiles, VolumesAreSavedAndPutIntoThoseOfTheNextPod) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to change the root of a process";
  const std::string first = Folder("pods/u/volumes/kubernetes.io~empty-dir/scratch");
  const std::string second = Folder("pods/v/volumes/kubernetes.io~empty-dir/scratch");
  const std::string image = Folder("image");
  ASSERT_TRUE(WriteFileAtomically(first + "/file", "content").ok());
  ASSERT_TRUE(SaveContainerFiles(Parsed(WithMount("/scratch", first)), image).ok());
  const absl::Status back = PutContainerFilesBack(Parsed(WithMount("/scratch", second)), image);
  EXPECT_TRUE(back.ok()) << back;
  EXPECT_EQ(ReadFile(second + "/file").value_or(""), "content");
}

// A folder of the node that is only named like one, or another pod's.
TEST_F(ContainerFiles, WhatIsNoVolumeOfThePodsIsNotWrittenTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to change the root of a process";
  const std::string image = Folder("image");
  const std::string first = Folder("pods/u/volumes/kubernetes.io~empty-dir/scratch");
  ASSERT_TRUE(WriteFileAtomically(first + "/file", "content").ok());
  ASSERT_TRUE(SaveContainerFiles(Parsed(WithMount("/scratch", first)), image).ok());
  for (const char* name : {"pods/other/volumes/kubernetes.io~empty-dir/scratch",
                           "data/volumes/kubernetes.io~empty-dir/scratch"}) {
    const ContainerConfig config = Parsed(WithMount("/scratch", Folder(name), "u"));
    EXPECT_THAT(Why(CheckContainerFiles(config)), HasSubstr("is no volume of the pod's")) << name;
    PutContainerFilesBack(config, image).IgnoreError();
    EXPECT_TRUE(std::filesystem::is_empty(Folder(name))) << name;
  }
}

TEST_F(ContainerFiles, WhatTheImageHasNotIsLeftAsItIs) {
  const std::string volume = Folder("pods/u/volumes/kubernetes.io~empty-dir/scratch");
  ASSERT_TRUE(WriteFileAtomically(volume + "/file", "content").ok());
  EXPECT_TRUE(PutContainerFilesBack(Parsed(WithMount("/scratch", volume)), Folder("image")).ok());
  EXPECT_EQ(ReadFile(volume + "/file").value_or(""), "content");
}

// ---- volumes that the kubelet writes ----

// As the kubelet makes one; returns its folder.
class WrittenVolumes : public ContainerFiles {
 protected:
  std::string Volume(const std::string& pod, const std::string& version, const std::string& content) const {
    const std::string volume = Folder("pods/" + pod + "/volumes/kubernetes.io~configmap/cm");
    Folder("pods/" + pod + "/volumes/kubernetes.io~configmap/cm/" + version);
    EXPECT_TRUE(WriteFileAtomically(absl::StrCat(volume, "/", version, "/key"), content).ok());
    EXPECT_EQ(symlink(version.c_str(), (volume + "/..data").c_str()), 0);
    return volume;
  }
  // What is found in the second pod by the name that the file had in the first.
  std::string FoundByItsOldName(const std::string& second) const {
    const ContainerConfig first = Parsed(WithMount("/cm", Volume("a", "..2026_05_01.1", "text")));
    EXPECT_TRUE(SaveContainerFiles(first, Folder("image")).ok());
    const absl::Status back = PutContainerFilesBack(Parsed(WithMount("/cm", second)), Folder("image"));
    EXPECT_TRUE(back.ok()) << back;
    return ReadFile(second + "/..2026_05_01.1/key").value_or("");
  }
};

TEST_F(WrittenVolumes, AreFoundByTheirOldNamesInTheNextPod) {
  EXPECT_EQ(FoundByItsOldName(Volume("b", "..2026_05_02.2", "text of b")), "text of b");
}

TEST_F(WrittenVolumes, OneThatHasTheSameNameIsLeftAsItIs) {
  EXPECT_EQ(FoundByItsOldName(Volume("b", "..2026_05_01.1", "text of b")), "text of b");
}

TEST_F(WrittenVolumes, WhatIsNotAsTheKubeletMakesItIsLeftAsItIs) {
  const std::string other = Folder("b/volumes/kubernetes.io~configmap/cm");
  EXPECT_EQ(FoundByItsOldName(other), "");
  EXPECT_TRUE(std::filesystem::is_empty(other));
}

TEST_F(WrittenVolumes, ANameThatIsAPathIsNotMade) {
  const std::string volume = Volume("b", "..2026_05_02.2", "text");
  for (const char* name : {"../../out", "..", "..data", "x", ""}) {
    ASSERT_TRUE(
        WriteFileAtomically(Folder("image") + "/versions.json", absl::StrCat(R"({"/cm": ")", name, R"("})"))
            .ok());
    EXPECT_TRUE(PutContainerFilesBack(Parsed(WithMount("/cm", volume)), Folder("image")).ok()) << name;
  }
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(volume)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"..2026_05_02.2", "..data"}));
}

TEST_F(WrittenVolumes, AFileOfTheirPresentVersionIsThereInTheNextPod) {
  const ContainerConfig config = Parsed(WithMount("/cm", Volume("a", "..2026_05_01.1", "text")));
  for (const char* file : {"/cm/..2026_05_01.1/key", "/cm", "/cm/x", "/cm2/..2025/key", "/tmp/x (deleted)"})
    EXPECT_EQ(WhyNotInNextPod(config, file), "") << file;
}

TEST_F(WrittenVolumes, AFileOfAnOlderVersionIsNot) {
  const ContainerConfig config = Parsed(WithMount("/cm", Volume("a", "..2026_05_02.2", "text")));
  for (const char* file :
       {"/cm/..2026_05_01.1/key", "/cm/..2026_05_01.1/key (deleted)", "/cm/..2026_05_02.2/x (deleted)"})
    EXPECT_THAT(WhyNotInNextPod(config, file), HasSubstr("written anew")) << file;
}

TEST_F(WrittenVolumes, AreFoundHoweverTheirPathIsWritten) {
  const std::string root = Folder("seen");
  std::filesystem::create_directories(root + "/run/cm");
  std::filesystem::create_symlink("/run", root + "/link");
  const std::string volume = Volume("a", "..2.2", "text");
  for (const char* written : {"/run/cm", "/run/cm/", "/link/cm", "/run//./cm"}) {
    ContainerConfig config = Parsed(WithMount(written, volume));
    ASSERT_TRUE(SeeAsProcessesDo(config, root).ok());
    EXPECT_THAT(WhyNotInNextPod(config, "/run/cm/..1.1/key"), HasSubstr("written anew")) << written;
    EXPECT_EQ(config.written[0].destination, written);
  }
}

TEST_F(ContainerFiles, FilesOfThePodAloneAreOthersInTheNextPod) {
  const ContainerConfig config = Parsed(absl::StrCat(
      R"({"root": {"path": "rootfs"}, "annotations": {"io.kubernetes.cri.container-name": "main"}, "mounts": [)",
      Mount("/etc/hosts", "/var/lib/kubelet/pods/u/etc-hosts"), ", ",
      Mount("/etc/hostname", "/var/lib/containerd/sandboxes/1/hostname"), ", ",
      Mount("/dev/termination-log", "/var/lib/kubelet/pods/u/containers/main/1a2b"), ", ",
      Mount("/data", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/containers/main/hostname"), "]}"));
  for (const char* file : {"/etc/hosts", "/etc/hostname", "/dev/termination-log", "/etc/hosts (deleted)"})
    EXPECT_THAT(WhyNotInNextPod(config, file), HasSubstr("another file in each pod")) << file;
  for (const char* file : {"/data", "/etc/passwd", "/data/hostname"})
    EXPECT_EQ(WhyNotInNextPod(config, file), "") << file;
}

TEST_F(ContainerFiles, OfAnOverlayTheUpperLayerIsSaved) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to mount";
  // An overlay on an overlay may not be had.
  if (!EnterPrivateMounts() || mount("tmpfs", folder_.c_str(), "tmpfs", 0, nullptr) != 0)
    GTEST_SKIP() << "needs the right to mount";
  ASSERT_TRUE(WriteFileAtomically(Folder("lower") + "/old", "image").ok());
  const std::string root = Folder("root with blank");
  const std::string options =
      absl::StrCat("lowerdir=", folder_, "/lower,upperdir=", Folder("up per"), ",workdir=", Folder("work"));
  if (mount("overlay", root.c_str(), "overlay", 0, options.c_str()) != 0) GTEST_SKIP() << "needs overlays";
  ASSERT_TRUE(WriteFileAtomically(root + "/new", "container").ok());
  const ContainerConfig config = Parsed(absl::StrCat(R"({"root": {"path": ")", root, R"("}})"));
  const std::string image = Folder("image");
  const absl::Status saved = SaveContainerFiles(config, image);
  ASSERT_TRUE(saved.ok()) << saved;
  ContainerConfig next;
  next.rootfs = Folder("next");
  const absl::Status back = PutContainerFilesBack(next, image);
  EXPECT_TRUE(back.ok()) << back;
  EXPECT_EQ(ReadFile(next.rootfs + "/new").value_or(""), "container");
  EXPECT_FALSE(std::filesystem::exists(next.rootfs + "/old")) << "that is the image's";
  umount2(root.c_str(), MNT_DETACH);
  umount2(folder_.c_str(), MNT_DETACH);
}

TEST_F(ContainerFiles, ARootThatIsNoOverlayCannotBeSaved) {
  const ContainerConfig config = Parsed(absl::StrCat(R"({"root": {"path": ")", Folder("root"), R"("}})"));
  const absl::Status saved = SaveContainerFiles(config, Folder("image"));
  EXPECT_THAT(std::string(saved.message()), HasSubstr(folder_ + "/root"));
}

// ---- mountinfo ----

std::string Overlay(const std::string& point, const std::string& options) {
  return absl::StrCat("36 35 98:0 / ", point, " rw,noatime master:1 shared:2 - overlay overlay ", options,
                      "\n");
}

TEST(UpperFolder, IsThatOfTheMount) {
  const std::string mounts = Overlay("/a", "rw,lowerdir=/l,upperdir=/upper/a,workdir=/w") +
                             Overlay("/b", "rw,lowerdir=/l,upperdir=/upper/b,workdir=/w");
  EXPECT_EQ(UpperFolder(mounts, "/b").value_or(""), "/upper/b");
}

TEST(UpperFolder, WithoutOptionalFieldsTheLineIsReadAsWell) {
  EXPECT_EQ(UpperFolder("36 35 0:9 / /a rw - overlay overlay rw,upperdir=/upper\n", "/a").value_or(""),
            "/upper");
}

TEST(UpperFolder, EscapesAreUndoneInBothPaths) {
  const std::string mounts = Overlay("/a\\040b\\134", "rw,upperdir=/up\\054per\\040\\011x,workdir=/w");
  EXPECT_EQ(UpperFolder(mounts, "/a b\\").value_or(""), "/up,per \tx");
}

TEST(UpperFolder, WhatIsNoEscapeStays) {
  EXPECT_EQ(UpperFolder(Overlay("/a", "upperdir=/x\\9zz\\"), "/a").value_or(""), "/x\\9zz\\");
}

TEST(UpperFolder, OfSeveralMountsOnOnePointTheLastCounts) {
  const std::string mounts =
      Overlay("/a", "upperdir=/first") + Overlay("/b", "upperdir=/b") + Overlay("/a", "upperdir=/second");
  EXPECT_EQ(UpperFolder(mounts, "/a").value_or(""), "/second");
}

TEST(UpperFolder, AMountOverTheOverlayHidesIt) {
  const std::string mounts = Overlay("/a", "upperdir=/first") + "37 35 0:9 / /a rw - tmpfs tmpfs rw\n";
  EXPECT_TRUE(absl::IsNotFound(UpperFolder(mounts, "/a").status()));
}

TEST(UpperFolder, OneThatCannotBeFoundFromHereIsNone) {
  EXPECT_TRUE(absl::IsNotFound(UpperFolder(Overlay("/a", "upperdir=up/per"), "/a").status()));
}

TEST(UpperFolder, NonsenseHasNone) {
  for (const char* mounts :
       {"", "\n\n", " - ", "a b c d /a - overlay", "x - y - z",
        "36 35 0:9 / /a rw overlay overlay rw,upperdir=/u\n", "36 35 0:9 / - overlay o u"})
    EXPECT_TRUE(absl::IsNotFound(UpperFolder(mounts, "/a").status())) << mounts;
}

TEST(UpperFolder, AnErrorNamesThePoint) {
  EXPECT_THAT(std::string(UpperFolder("", "/run/bundle/rootfs").status().message()),
              HasSubstr("/run/bundle/rootfs"));
}

}  // namespace
}  // namespace siding
