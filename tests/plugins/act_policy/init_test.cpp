// README: the backbone's weights from a file of torchvision's names, through [init].
#include <ATen/DLConvertor.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "plugin_under_test.hpp"
#include "record/safetensors.hpp"
#include "train/init.hpp"

namespace headroom {
namespace {

TEST(ActPolicyInit, BackboneWeightsComeFromAFile) {
  const std::string body = "backbones.0.0.body.";
  const auto source = make_policy(kTiny, Robot{}, 1), policy = make_policy(kTiny, Robot{}, 2),
             fresh = make_policy(kTiny, Robot{}, 2);
  std::vector<std::pair<std::string, at::Tensor>> stored = {{"fc.bias", at::zeros({1000})},
                                                            {"bn1.num_batches_tracked", at::zeros({}, at::kLong)}};
  for (const Parameter& each : source->parameters())
    if (each.name.starts_with(body)) stored.emplace_back(each.name.substr(body.size()), each.tensor->detach());
  std::vector<TensorBytes> bytes;
  for (const auto& [name, tensor] : stored) {
    bytes.push_back({name,
                     at::getDLDataType(tensor),
                     tensor.sizes().vec(),
                     {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  const auto file =
      std::filesystem::path(testing::TempDir()) / ("resnet18-" + std::to_string(::getpid()) + ".safetensors");
  write_safetensors(file, bytes);
  initialise_from({.from = file, .map = {{"", body}}, .ignore = {"[!b]*"}}, *policy);
  std::filesystem::remove(file);
  int64_t taken = 0;
  for (const Parameter& each : policy->parameters()) {
    if (each.kind == HR_DERIVED) continue;
    const bool backbone = each.name.starts_with(body);
    EXPECT_TRUE(each.tensor->equal(parameter(backbone ? *source : *fresh, each.name))) << each.name;
    taken += backbone ? 1 : 0;
  }
  EXPECT_EQ(taken, 100);
}

}  // namespace
}  // namespace headroom
