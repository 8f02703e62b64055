#include "controller/platform/kubernetes/objects/saving.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A pod that can be saved, with what this merge patch changes.
Pod PodWith(const std::string& patch = "{}") {
  Json json = Json::parse(R"({
    "metadata": {"name": "a", "namespace": "d", "uid": "u", "resourceVersion": "5",
                 "ownerReferences": [{"kind": "Job", "name": "train", "uid": "owner", "controller": true}]},
    "spec": {"runtimeClassName": "siding", "containers": [{"name": "main"}],
             "volumes": [{"name": "scratch", "emptyDir": {}}]}})");
  json.merge_patch(Json::parse(patch));
  return PodFrom(*ObjectFrom(std::move(json)));
}

TEST(WhyNotSavedTest, APodOfAJobCanBeSaved) { EXPECT_THAT(WhyNotSaved(PodWith()), IsEmpty()); }
TEST(WhyNotSavedTest, ItsContainerIsMadeBySidingRunc) {
  EXPECT_THAT(WhyNotSaved(PodWith(R"({"spec": {"runtimeClassName": null}})")), HasSubstr("runtimeClassName"));
}
TEST(WhyNotSavedTest, NobodyMakesABarePodAgain) {
  EXPECT_THAT(WhyNotSaved(PodWith(R"({"metadata": {"ownerReferences": []}})")), HasSubstr("no owner"));
}
TEST(WhyNotSavedTest, WhatAnUnknownOwnerDoesIsNotKnown) {
  EXPECT_THAT(
      WhyNotSaved(PodWith(
          R"({"metadata": {"ownerReferences": [{"kind": "Ring", "uid": "r", "controller": true}]}})")),
      HasSubstr("its owner is a Ring"));
}
TEST(WhyNotSavedTest, SeveralContainersAreNotFrozenAtOneInstant) {
  EXPECT_THAT(WhyNotSaved(PodWith(R"({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})")),
              HasSubstr("several containers"));
  EXPECT_THAT(
      WhyNotSaved(PodWith(R"({"spec": {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}})")),
      HasSubstr("container s runs beside the others"));
}
TEST(WhyNotSavedTest, WhatOnlyPreparesItRunsAgain) {
  EXPECT_THAT(WhyNotSaved(PodWith(R"({"spec": {"initContainers": [{"name": "a"}]}})")), IsEmpty());
}
TEST(WhyNotSavedTest, AFrozenContainerWouldFailItsProbes) {
  for (const char* probe : {"livenessProbe", "startupProbe"}) {
    const Json patch = {
        {"spec", {{"containers", Json::array({{{"name", "main"}, {probe, {{"exec", 1}}}}})}}}};
    EXPECT_THAT(WhyNotSaved(PodWith(patch.dump())), HasSubstr(probe));
  }
}
TEST(WhyNotSavedTest, WhatItsNodeLendsItIsNotElsewhere) {
  EXPECT_THAT(WhyNotSaved(PodWith(R"({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}})")),
              HasSubstr("its volume v"));
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"})
    EXPECT_THAT(WhyNotSaved(PodWith(Json{{"spec", {{field, true}}}}.dump())), HasSubstr(field));
}
// A pod with a folder of its node, where the administrator has said which are the same on all nodes.
class HostPathTest : public testing::Test {
 protected:
  static std::string WhyNot(const std::string& path, const Json& mount = Json::object(),
                            const std::string& type = "") {
    Json mounted = {{"name", "v"}, {"mountPath", "/in"}};
    mounted.merge_patch(mount);
    Json source = {{"path", path}};
    if (!type.empty()) source["type"] = type;
    const Json main = {{"name", "main"}, {"volumeMounts", Json::array({mounted})}};
    const Json volume = {{"name", "v"}, {"hostPath", source}};
    return WhyNotSaved(
        PodWith(
            Json{{"spec", {{"containers", Json::array({main})}, {"volumes", Json::array({volume})}}}}.dump()),
        {.read_only = {"/software"}, .read_write = {"/data"}});
  }
};
TEST_F(HostPathTest, WhatIsTheSameOnAllNodesIsNoObstacle) {
  for (const char* path : {"/data", "/data/", "/data/set", "//data/./set"})
    EXPECT_THAT(WhyNot(path), IsEmpty());
}
TEST_F(HostPathTest, AnythingElseIs) {
  for (const char* path : {"/", "/etc", "/da"}) EXPECT_THAT(WhyNot(path), HasSubstr("its volume v")) << path;
}
TEST_F(HostPathTest, ANameThatBeginsAlikeIsAnotherFolder) {
  for (const char* path : {"/database", "/data-2/a", "/data..", "/software2"})
    EXPECT_THAT(WhyNot(path, {{"readOnly", true}}), HasSubstr("kubernetes.host_paths")) << path;
}
TEST_F(HostPathTest, NobodyLeavesItByDots) {
  for (const char* path : {"/data/../etc", "/data/..", "/data/a/../../etc", "/data/../data"})
    EXPECT_THAT(WhyNot(path), HasSubstr("kubernetes.host_paths")) << path;
}
TEST_F(HostPathTest, WhereItMayBeReadItIsMountedReadOnly) {
  EXPECT_THAT(WhyNot("/software/lib", {{"readOnly", true}}), IsEmpty());
  EXPECT_THAT(WhyNot("/software/lib", {{"readOnly", false}}), HasSubstr("read-only alone"));
  EXPECT_THAT(WhyNot("/software/lib"), HasSubstr("read-only alone"));
  EXPECT_THAT(WhyNot("/data", {{"readOnly", true}}), IsEmpty());
}
TEST_F(HostPathTest, AlsoByWhatPreparesThePod) {
  const Json mount = {{"name", "v"}, {"mountPath", "/in"}};
  const Json first = {{"name", "first"}, {"volumeMounts", Json::array({mount})}};
  const Json volume = {{"name", "v"}, {"hostPath", {{"path", "/software"}}}};
  const Json patch = {
      {"spec", {{"initContainers", Json::array({first})}, {"volumes", Json::array({volume})}}}};
  EXPECT_THAT(WhyNotSaved(PodWith(patch.dump()), {.read_only = {"/software"}}), HasSubstr("read-only alone"));
}
TEST_F(HostPathTest, SocketsAndDevicesAreTheNodes) {
  for (const char* type : {"Socket", "CharDevice", "BlockDevice", "Unheard"})
    EXPECT_THAT(WhyNot("/data/a", {}, type), HasSubstr("something else than files")) << type;
  for (const char* type : {"Directory", "DirectoryOrCreate", "File", "FileOrCreate"})
    EXPECT_THAT(WhyNot("/data/a", {}, type), IsEmpty()) << type;
}
// Agents would take it for a volume that lives as long as its pod, and put back what others have written to.
TEST_F(HostPathTest, ItIsNotNamedAsWhatKubeletsMake) {
  for (const char* path : {"/data/volumes/kubernetes.io~empty-dir/x", "/data/volume-subpaths/v/c/0",
                           "/data/volumes/kubernetes.io~configmap/x"})
    EXPECT_THAT(WhyNot(path), HasSubstr("a name of its kubelet's")) << path;
}
TEST_F(HostPathTest, NorAsWhatTheyMakeForOnePodAlone) {
  for (const char* path : {"/data/hostname", "/data/a/etc-hosts", "/data/containers/main/0"})
    EXPECT_THAT(WhyNot(path), HasSubstr("a name of its kubelet's")) << path;
  for (const char* path : {"/data/my-hostname", "/data/hostname/a", "/data/containers/other/0"})
    EXPECT_THAT(WhyNot(path), IsEmpty()) << path;
}
TEST_F(HostPathTest, NorIsItTheSharedMemoryOfThePod) {
  for (const char* at : {"/dev/shm", "/dev//shm/"})
    EXPECT_THAT(WhyNot("/data/shm", {{"mountPath", at}}), HasSubstr("/dev/shm")) << at;
}

TEST(WhyNotSavedTest, APartOfAVolumeIsNotFoundAgain) {
  EXPECT_THAT(
      WhyNotSaved(PodWith(
          R"({"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "v", "subPath": "x"}]}]}})")),
      HasSubstr("a part of the volume v"));
}
TEST(WhyNotSavedTest, TerminalsAndBlockDevicesStay) {
  EXPECT_THAT(WhyNotSaved(PodWith(R"({"spec": {"containers": [{"name": "main", "tty": true}]}})")),
              HasSubstr("terminal"));
  EXPECT_THAT(WhyNotSaved(PodWith(
                  R"({"spec": {"containers": [{"name": "main", "volumeDevices": [{"name": "v"}]}]}})")),
              HasSubstr("block device"));
}
TEST(WhyNotSavedTest, GpusAreStillTheirKubelets) {
  EXPECT_THAT(
      WhyNotSaved(PodWith(
          R"({"spec": {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": 1}}}]}})")),
      HasSubstr("GPUs"));
}

TEST(MakesPodsTest, AJobThatIsNotOverDoes) {
  EXPECT_TRUE(MakesPods("Job", Json::parse(R"({"status": {"active": 1}})")));
  EXPECT_TRUE(MakesPods(
      "Job", Json::parse(R"({"status": {"conditions": [{"type": "Suspended", "status": "True"}]}})")));
}
TEST(MakesPodsTest, AJobThatIsOverDoesNot) {
  for (const char* type : {"Complete", "Failed"})
    EXPECT_FALSE(MakesPods(
        "Job", {{"status", {{"conditions", Json::array({{{"type", type}, {"status", "True"}}})}}}}));
}
TEST(MakesPodsTest, WhatIsBeingDeletedDoesNot) {
  EXPECT_FALSE(
      MakesPods("Job", Json::parse(R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})")));
}
TEST(MakesPodsTest, ASetDoesForItsReplicas) {
  EXPECT_TRUE(MakesPods("ReplicaSet", Json::parse(R"({"spec": {}})")));  // one, when it does not say
  EXPECT_TRUE(MakesPods("StatefulSet", Json::parse(R"({"spec": {"replicas": 2}})")));
  EXPECT_FALSE(MakesPods("ReplicaSet", Json::parse(R"({"spec": {"replicas": 0}})")));
}

TEST(PlaceOfTest, PodsOfAJobAreAlike) { EXPECT_EQ(PlaceOf(PodWith()), ""); }
TEST(PlaceOfTest, AnIndexedJobsPodHasItsIndex) {
  EXPECT_EQ(
      PlaceOf(PodWith(R"({"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "3"}}})")),
      "3");
}
TEST(PlaceOfTest, AMemberOfAStatefulSetHasItsName) {
  EXPECT_EQ(
      PlaceOf(PodWith(
          R"({"metadata": {"ownerReferences": [{"kind": "StatefulSet", "uid": "s", "controller": true}]}})")),
      "a");
}

TEST(PatchToUncountTest, TheJobsFinalizerGoesAndOthersStay) {
  const auto patch =
      PatchToUncount(PodWith(R"({"metadata": {"finalizers": ["x/y", "batch.kubernetes.io/job-tracking"]}})"));
  EXPECT_EQ(*patch, Json::parse(R"({"metadata": {"resourceVersion": "5", "finalizers": ["x/y"]}})"));
}
TEST(PatchToUncountTest, WhereThereIsNoneNothingIsDone) {
  EXPECT_FALSE(PatchToUncount(PodWith()));
  EXPECT_FALSE(PatchToUncount(PodWith(R"({"metadata": {"finalizers": ["x/y"]}})")));
}

}  // namespace
}  // namespace siding::kubernetes
