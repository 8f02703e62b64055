#include "controller/platform/kubernetes/client/errors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

absl::Status Of(int code, const std::string& body, std::map<std::string, std::string> headers = {}) {
  return ToStatus(ErrorFrom(HttpResponse{code, std::move(headers), body}), "patch pods default/a");
}
std::string StatusObject(const std::string& reason, const std::string& details = "{}") {
  return R"({"kind":"Status","reason":")" + reason + R"(","message":"words","details":)" + details + "}";
}

TEST(Errors, ANameThatIsTakenIsNotAConflict) {
  EXPECT_TRUE(absl::IsAlreadyExists(Of(409, StatusObject("AlreadyExists"))));
  EXPECT_TRUE(absl::IsAborted(Of(409, StatusObject("Conflict"))));
}
TEST(Errors, AnExpiredVersionIsOutOfRange) {
  EXPECT_TRUE(absl::IsOutOfRange(Of(410, StatusObject("Expired"))));
}
TEST(Errors, AForbiddenCallNamesVerbAndResource) {
  const absl::Status status = Of(403, StatusObject("Forbidden"));
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(status.message(), HasSubstr("patch pods default/a: 403 Forbidden: words"));
}
TEST(Errors, ARefusedObjectNamesTheFields) {
  const absl::Status status = Of(422, StatusObject("Invalid", R"({"causes":[
      {"reason":"FieldValueInvalid","field":"spec.nodeName","message":"is immutable"}]})"));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("spec.nodeName: is immutable"));
}
TEST(Errors, ABudgetIsNoBusyServer) {
  const std::string budget = R"({"causes":[{"reason":"DisruptionBudget","message":"needs 2"}]})";
  EXPECT_TRUE(absl::IsFailedPrecondition(Of(429, StatusObject("TooManyRequests", budget))));
  EXPECT_TRUE(absl::IsResourceExhausted(Of(429, StatusObject("TooManyRequests"))));
}
TEST(Errors, ThePauseIsInTheHeaderOrTheDetails) {
  EXPECT_EQ(ErrorOf(Of(429, "busy", {{"retry-after", "7"}}))->retry_after, Duration(seconds(7)));
  EXPECT_EQ(ErrorOf(Of(429, StatusObject("", R"({"retryAfterSeconds":3})")))->retry_after,
            Duration(seconds(3)));
}
TEST(Errors, AnAbsurdPauseIsBounded) {
  EXPECT_EQ(ErrorOf(Of(429, "", {{"retry-after", "9223372036854775807"}}))->retry_after,
            Duration(std::chrono::hours(1)));
}
TEST(Errors, TheStatusKeepsAllThatTheServerSaid) {
  const ApiError error{422, "Invalid", "words", {{"FieldValueInvalid", "spec.x", "no"}}, seconds(2)};
  EXPECT_EQ(ErrorOf(ToStatus(error, "create pods")), error);
}
TEST(Errors, APageOfAProxyIsNotRepeated) {
  const absl::Status status = Of(503, "<html>secret</html>");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), Not(HasSubstr("secret")));
}
TEST(Errors, WhatTheServerSaysStaysOnOneLine) {
  const absl::Status status = Of(404, R"({"kind":"Status","message":"a\nINFO: all is well"})");
  EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
}
TEST(Errors, WhatWasNotRefusedMayBeDone) {
  for (const int code : {408, 500, 503, 504}) EXPECT_TRUE(MayBeDone(Of(code, ""))) << code;
  for (const int code : {400, 403, 404, 409, 422, 429}) EXPECT_FALSE(MayBeDone(Of(code, ""))) << code;
  EXPECT_TRUE(MayBeDone(absl::UnavailableError("connection reset")));
  EXPECT_TRUE(MayBeDone(absl::InternalError("the answer is no JSON")));
  EXPECT_FALSE(MayBeDone(absl::OkStatus()));
}
TEST(Errors, AnOrdinaryStatusHasNone) { EXPECT_FALSE(ErrorOf(absl::NotFoundError("x")).has_value()); }

}  // namespace
}  // namespace siding::kubernetes
