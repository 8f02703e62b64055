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
