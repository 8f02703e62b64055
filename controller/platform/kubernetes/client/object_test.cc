#include "controller/platform/kubernetes/client/object.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/client/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;

constexpr char kPod[] =
    R"({"metadata":{"namespace":"d","name":"a","uid":"u","resourceVersion":"7"},"unknown":{"x":1}})";

std::string Event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}

TEST(ParseJson, WhatIsTooDeepIsRefused) {
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '[')).ok());
  EXPECT_TRUE(ParseJson(R"({"a":"[[[[ \" [[["})").ok());
}
TEST(ParseJson, AnErrorHasNothingOfTheText) { EXPECT_EQ(ParseJson("secret").status().message(), "not JSON"); }
TEST(WriteJson, WhatIsNoUtf8IsReplaced) { EXPECT_EQ(WriteJson(Json("a\xff")), "\"a\xef\xbf\xbd\""); }
TEST(WholeAt, ANumberThatDoesNotFitIsNone) {
  EXPECT_EQ(WholeAt(*ParseJson(R"({"n":18446744073709551615})"), {"n"}, -1), -1);
}

TEST(ObjectFrom, KeepsWhatItDoesNotKnow) {
  const auto object = ObjectFrom(*ParseJson(kPod));
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(ToString(object->name), "d/a");
  EXPECT_EQ(WholeAt(*object->json, {"unknown", "x"}), 1);
}
TEST(ObjectFrom, NamesWhatIsMissing) {
  const auto object = ObjectFrom(*ParseJson(R"({"metadata":{"name":"a","resourceVersion":"7"}})"));
  EXPECT_THAT(object.status().message(), HasSubstr("metadata.uid"));
}

TEST(PageFrom, AnEmptyListMayBeNull) {
  const auto page = PageFrom(R"({"metadata":{"resourceVersion":"5","continue":"t"},"items":null})");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->version, "5");
  EXPECT_EQ(page->next, "t");
}
TEST(PageFrom, WhatIsNoListIsRefused) {
  EXPECT_FALSE(PageFrom(R"({"metadata":{"resourceVersion":"5"}})").ok());
  EXPECT_FALSE(PageFrom("[]").ok());
}

TEST(EventFrom, ReadsAnObject) {
  const auto event = EventFrom(Event("DELETED", kPod), "watch pods");
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->kind, WatchEvent::Kind::kDeleted);
  EXPECT_EQ(event->object.version, "7");
}
TEST(EventFrom, ABookmarkHasOnlyAVersion) {
  const auto event = EventFrom(Event("BOOKMARK", R"({"metadata":{"resourceVersion":"9"}})"), "watch pods");
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->object.version, "9");
}
TEST(EventFrom, AnErrorEventIsAnError) {
  const auto event =
      EventFrom(Event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})"), "watch pods");
  EXPECT_TRUE(absl::IsOutOfRange(event.status()));
  EXPECT_EQ(ErrorOf(event.status())->reason, "Expired");
}
TEST(EventFrom, AnUnknownTypeIsNoEvent) {
  EXPECT_TRUE(absl::IsInvalidArgument(EventFrom(Event("SOON", kPod), "watch pods").status()));
}

TEST(PathOf, IsUnderApiOrApis) {
  EXPECT_EQ(*PathOf(Pods(), ""), "/api/v1/pods");
  EXPECT_EQ(*PathOf(Nodes(), {"", "n"}), "/api/v1/nodes/n");
  EXPECT_EQ(*PathOf({"batch", "v1", "jobs"}, {"d", "j"}, "status"),
            "/apis/batch/v1/namespaces/d/jobs/j/status");
}
TEST(PathOf, ANameCannotLeadElsewhere) {
  EXPECT_FALSE(PathOf(Pods(), {"d", ".."}).ok());
  EXPECT_FALSE(PathOf(Pods(), {"d", ""}).ok());
  EXPECT_FALSE(PathOf(Pods(), {"", "a"}).ok());
  EXPECT_EQ(*PathOf(Pods(), {"d", "a/../b?x"}), "/api/v1/namespaces/d/pods/a%2F..%2Fb%3Fx");
}

}  // namespace
}  // namespace siding::kubernetes
