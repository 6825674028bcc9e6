// What one run of the kernel campaign is drawn from, as text that draws it again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace headroom {

// A value for every dimension: what is trained, what is beside it, how it is started.
class CampaignCase {
 public:
  // The index-th of a campaign; the same on every machine that can do the same.
  static CampaignCase draw(uint64_t seed, uint64_t index);
  // As text() wrote it; what is left out is plain. Throws std::invalid_argument.
  static CampaignCase parse(const std::string& text);

  std::string text() const;  // "experiment=hungry size=small ..."
  // The values on which the need for memory depends.
  std::string need() const;

  const std::string& operator[](const std::string& dimension) const { return values_.at(dimension); }
  bool is(const std::string& dimension, const std::string& value) const { return values_.at(dimension) == value; }
  int64_t number(const std::string& dimension) const { return std::stoll(values_.at(dimension)); }
  bool has_recordings() const;                                     // that HDF5 files hold
  bool has_module() const;                                         // a model of a Python file
  bool has_dataset() const;                                        // data of a Python file
  double share() const { return std::stod(values_.at("share")); }  // room for the run, of its own peak

 private:
  friend CampaignCase smallest(CampaignCase found, const std::function<bool(const CampaignCase&)>& fails);
  // Puts back what the experiment does not offer or the machine cannot do.
  void make_possible();

  std::map<std::string, std::string> values_;
};

// Puts one dimension after the other back to its plain value where the case still fails.
CampaignCase smallest(CampaignCase found, const std::function<bool(const CampaignCase&)>& fails);

}  // namespace headroom
