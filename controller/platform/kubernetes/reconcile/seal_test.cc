#include "controller/platform/kubernetes/reconcile/seal.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;

const ObjectName kSecret{"siding", "siding-seal"};

Pod Marked(const std::string& uid, const std::map<std::string, std::string>& marks) {
  Pod pod;
  pod.uid = uid;
  pod.said = marks;
  return pod;
}

class Kept final : public SealKeeper {
 public:
  absl::StatusOr<std::string> Read() override { return read; }
  absl::Status Keep(const std::string& key) override {
    if (keeps.ok()) read = key;
    return keeps;
  }
  absl::StatusOr<std::string> read = absl::NotFoundError("");
  absl::Status keeps;
};

class SealTest : public testing::Test {
 protected:
  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_{{.resources = {Secrets()}}};
  FakeTransport transport_{server_, clock_};
  ApiClient client_{transport_, pacer_};
  Kept kept_;

  absl::StatusOr<Seal> Load() { return Seal::Load(client_, kSecret, &kept_); }
  bool HasSecret() { return server_.store().Find("secrets", kSecret) != nullptr; }
};

TEST_F(SealTest, ItHoldsOnThePodThatItWasMadeFor) {
  const Seal seal(std::string(Seal::kKeySize, 'k'));
  const std::string of_u = seal.Of("u", "7", "");
  EXPECT_TRUE(seal.HoldsOn(Marked("u", {{"job", "7"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("v", {{"job", "7"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("u", {{"job", "8"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("u", {{"job", "7"}, {"starts", "9"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("u", {{"job", "7"}})));
  EXPECT_FALSE(Seal(std::string(Seal::kKeySize, 'x')).HoldsOn(Marked("u", {{"job", "7"}, {"seal", of_u}})));
}
TEST_F(SealTest, AllControllersHaveTheSameKey) {
  const auto first = Seal::Load(client_, kSecret, nullptr);
  const auto second = Seal::Load(client_, kSecret, nullptr);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->Of("u", "7", ""), second->Of("u", "7", ""));
}
TEST_F(SealTest, WhoComesLaterTakesWhatIsThere) {
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "secrets/siding-seal",
                  .method = HttpMethod::kGet,
                  .code = 404,
                  .reason = "NotFound"});
  ASSERT_TRUE(Seal::Load(client_, kSecret, nullptr).ok());
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "secrets/siding-seal",
                  .method = HttpMethod::kGet,
                  .code = 404,
                  .reason = "NotFound"});
  const auto late = Seal::Load(client_, kSecret, nullptr);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->Of("u", "7", ""), Seal::Load(client_, kSecret, nullptr)->Of("u", "7", ""));
}
TEST_F(SealTest, ASecretWithoutAKeyIsLeftForSomebodyToMend) {
  server_.store().Put("secrets", kSecret, {{"data", {{"key", "c2hvcnQ="}}}});
  EXPECT_THAT(Seal::Load(client_, kSecret, nullptr).status().message(),
              HasSubstr("Secret siding/siding-seal: data.key: expected 32 bytes"));
}

// ---- The key that is kept. ----

TEST_F(SealTest, ASecretThatWasDeletedHasTheSameKeyAgain) {
  const auto first = Load();
  ASSERT_TRUE(first.ok()) << first.status();
  server_.store().Remove("secrets", kSecret);
  const auto second = Load();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->Of("u", "7", ""), second->Of("u", "7", ""));
  EXPECT_EQ(first->Of("u", "7", ""), Seal::Load(client_, kSecret, nullptr)->Of("u", "7", ""));
}
TEST_F(SealTest, WhereNoneIsKeptTheKeyOfTheSecretIs) {
  const auto before = Seal::Load(client_, kSecret, nullptr);  // an earlier siding
  const auto now = Load();
  ASSERT_TRUE(before.ok() && now.ok()) << before.status() << now.status();
  EXPECT_EQ(before->Of("u", "7", ""), now->Of("u", "7", ""));
  EXPECT_EQ(before->Of("u", "7", ""), Seal(*kept_.read).Of("u", "7", ""));
}
TEST_F(SealTest, AnotherKeyThanTheOneThatIsKeptIsRefused) {
  ASSERT_TRUE(Load().ok());
  server_.store().Remove("secrets", kSecret);
  ASSERT_TRUE(Seal::Load(client_, kSecret, nullptr).ok());  // somebody makes one
  const std::string before = *kept_.read;
  EXPECT_THAT(Load().status().message(),
              HasSubstr("Secret siding/siding-seal: data.key: expected the key that siding keeps"));
  EXPECT_EQ(*kept_.read, before);
}
TEST_F(SealTest, WhatCannotBeReadIsNotTakenForNone) {
  kept_.read = absl::InternalError("the disk");
  EXPECT_EQ(Load().status().message(), "the disk");
  EXPECT_FALSE(HasSecret());
}
TEST_F(SealTest, NothingIsSealedWithAKeyThatIsNotKept) {
  kept_.keeps = absl::ResourceExhaustedError("the disk is full");
  EXPECT_EQ(Load().status().message(), "the disk is full");
  kept_.keeps = absl::OkStatus();
  EXPECT_TRUE(Load().ok());
}
TEST_F(SealTest, WhoComesLaterKeepsWhatIsThere) {
  ASSERT_TRUE(Seal::Load(client_, kSecret, nullptr).ok());
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "secrets/siding-seal",
                  .method = HttpMethod::kGet,
                  .code = 404,
                  .reason = "NotFound"});
  const auto late = Load();
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->Of("u", "7", ""), Load()->Of("u", "7", ""));
}

}  // namespace
}  // namespace siding::kubernetes
