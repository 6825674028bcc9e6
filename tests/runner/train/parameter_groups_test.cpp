#include "train/parameter_groups.hpp"

#include <gmock/gmock.h>

#include "error.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;

// A backbone that the model itself puts in a group with a rate of its own, a head, and a buffer.
class Network {
 public:
  Network() {
    tensors_.resize(6, at::zeros({2, 3}));
    const char* names[] = {"backbone.conv.weight", "backbone.conv.bias", "backbone.norm.weight",
                           "head.weight",          "head.bias",          "head.mean"};
    for (size_t i = 0; i < tensors_.size(); ++i)
      parameters.push_back({.name = names[i], .group = i < 3 ? "body" : "", .tensor = &tensors_[i]});
    parameters[0].lr = 0.01;
    parameters[3].lr_scale = 0.5;
    parameters[5].kind = HR_BUFFER;
  }

  std::string refusal(std::vector<ParameterGroup> groups) {
    try {
      apply_groups(groups, parameters, "net");
    } catch (const Error& problem) {
      EXPECT_EQ(problem.exit_code(), Exit::bad_input);
      return problem.what();
    }
    return "accepted";
  }

  std::vector<Parameter> parameters;

 private:
  std::vector<at::Tensor> tensors_;
};

TEST(ParameterGroups, TheFirstThatMatchesCounts) {
  Network net;
  const std::vector<ParameterGroup> groups = {
      {.match = "backbone.norm.*"}, {.match = "*.bias", .weight_decay = 0.0}, {.match = "backbone.*", .freeze = true}};
  apply_groups(groups, net.parameters, "net");
  EXPECT_FALSE(net.parameters[0].trains());
  EXPECT_TRUE(net.parameters[1].trains());
  EXPECT_EQ(net.parameters[1].weight_decay, 0.0);
  EXPECT_TRUE(net.parameters[2].trains()) << "a group that sets nothing keeps its parameters out of later ones";
  EXPECT_FALSE(net.parameters[2].weight_decay);
  EXPECT_FALSE(net.parameters[3].weight_decay);
  EXPECT_THAT(group_lines(groups, net.parameters),
              ElementsAre("train.groups: \"backbone.norm.*\" is 1 parameter with 6 numbers",
                          "train.groups: \"*.bias\" is 2 parameters with 12 numbers, weight decay 0",
                          "train.groups: \"backbone.*\" is 1 parameter with 6 numbers, frozen"));
}

TEST(ParameterGroups, ScaleWhatTheModelItselfSays) {
  Network net;
  apply_groups(std::vector<ParameterGroup>{{.match = "*", .lr_scale = 0.1}}, net.parameters, "net");
  EXPECT_DOUBLE_EQ(net.parameters[0].lr, 0.001);
  EXPECT_DOUBLE_EQ(net.parameters[1].lr_scale, 0.1);
  EXPECT_EQ(net.parameters[1].lr, 0.0);
  EXPECT_DOUBLE_EQ(net.parameters[3].lr_scale, 0.05);
  EXPECT_EQ(net.parameters[5].lr_scale, 1.0) << "a buffer has no rate";
}

TEST(ParameterGroups, MayBeTheGroupsOfTheModel) {
  Network net;
  apply_groups(std::vector<ParameterGroup>{{.match = "body", .freeze = true}}, net.parameters, "net");
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(net.parameters[i].trains());
  EXPECT_TRUE(net.parameters[3].trains());
}

TEST(ParameterGroups, WhatMatchesNothingIsRefusedWithANameThatIsNear) {
  EXPECT_EQ(Network().refusal({{.match = "backbon.*", .place = "x.toml:7:1"}}),
            "[config] x.toml:7:1: train.groups[0].match is \"backbon.*\", which no parameter of model 'net' is called: "
            "did you mean \"backbone.*\"?");
  EXPECT_EQ(Network().refusal({{.match = "head.wieght"}}),
            "[config] train.groups[0].match is \"head.wieght\", which no parameter of model 'net' is called: did you "
            "mean \"head.weight\"?");
  EXPECT_EQ(Network().refusal({{.match = "head.*"}, {.match = "transformer.*"}}),
            "[config] train.groups[1].match is \"transformer.*\", which no parameter of model 'net' is called; it has "
            "\"backbone.conv.weight\", \"backbone.conv.bias\", \"backbone.norm.weight\", \"head.weight\", "
            "\"head.bias\"");
  EXPECT_EQ(Network().refusal({{.match = "head.mean"}}).find("[config] train.groups[0].match is \"head.mean\""), 0u)
      << "a buffer is not trained";
}

TEST(ParameterGroups, WhatEarlierOnesTakeAwayWholeIsRefused) {
  EXPECT_EQ(Network().refusal({{.match = "head.*", .lr_scale = 2.0}, {.match = "head.bias", .freeze = true}}),
            "[config] train.groups[1].match is \"head.bias\", and all that it matches belongs to groups before it: the "
            "first that matches counts; write it before them or leave it out");
}

TEST(ParameterGroups, NothingLeftToTrainIsRefused) {
  EXPECT_EQ(Network().refusal({{.match = "*", .freeze = true, .place = "e.toml:7:1"}}),
            "[config] e.toml:7:1: train.groups freezes all that model 'net' would train; leave some of it unfrozen");
}

}  // namespace
}  // namespace headroom
