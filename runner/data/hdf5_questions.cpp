#include "data/hdf5_questions.hpp"

#include "data/hdf5_output.hpp"
#include "data/hdf5_strings.hpp"
#include "data/wire.hpp"

namespace headroom {

namespace {

void put(WireWriter& out, const ArrayMember& member) {
  out.put_all(member.name);
  out.put_all(member.type_name);
  out.put(member.dtype);
  out.put(member.big_endian);
  out.put_all(member.shape);
  out.put(member.values);
  out.put(member.file_offset);
  out.put(member.offset);
}

ArrayMember take_member(WireReader& in) {
  ArrayMember member;
  member.name = in.take_all<std::string>();
  member.type_name = in.take_all<std::string>();
  member.dtype = in.take<DLDataType>();
  member.big_endian = in.take<bool>();
  member.shape = in.take_all<std::vector<uint64_t>>();
  member.values = in.take<uint64_t>();
  member.file_offset = in.take<uint64_t>();
  member.offset = in.take<uint64_t>();
  return member;
}

void put(WireWriter& out, const ArrayPlan& plan) {
  const ArrayLayout& layout = plan.layout;
  out.put(plan.file);
  out.put_all(layout.shape);
  out.put_all(layout.chunk);
  out.put(layout.compound);
  put(out, layout.element);
  out.put(uint64_t{layout.members.size()});
  for (const ArrayMember& member : layout.members) put(out, member);
  out.put(layout.filtered);
  out.put(layout.element_bytes);
  out.put(layout.record_bytes);
  out.put(layout.as_in_file);
  out.put(plan.lane);
  out.put_all(plan.why_library);
  out.put(plan.offset);
  out.put_all(plan.grid);
  out.put_all(plan.chunks);
  out.put_all(plan.filters);
  out.put_all(plan.fill);
}

ArrayPlan take_plan(WireReader& in) {
  ArrayPlan plan;
  ArrayLayout& layout = plan.layout;
  plan.file = in.take<FileIdentity>();
  layout.shape = in.take_all<std::vector<uint64_t>>();
  layout.chunk = in.take_all<std::vector<uint64_t>>();
  layout.compound = in.take<bool>();
  layout.element = take_member(in);
  const auto members = in.take<uint64_t>();
  for (uint64_t i = 0; i < members; ++i) layout.members.push_back(take_member(in));
  layout.filtered = in.take<bool>();
  layout.element_bytes = in.take<uint64_t>();
  layout.record_bytes = in.take<uint64_t>();
  layout.as_in_file = in.take<bool>();
  plan.lane = in.take<Lane>();
  plan.why_library = in.take_all<std::string>();
  plan.offset = in.take<uint64_t>();
  plan.grid = in.take_all<std::vector<uint64_t>>();
  plan.chunks = in.take_all<std::vector<StoredChunk>>();
  plan.filters = in.take_all<std::vector<ChunkFilter>>();
  plan.fill = in.take_all<std::vector<std::byte>>();
  return plan;
}

void answer(const Hdf5Question& question, bool may_print, Hdf5Answer& result) {
  const auto file = Hdf5File::share(question.path);
  switch (question.kind) {
    case Hdf5Question::Kind::plan:
      result.plan = plan_array(*file, question.object, may_print);
      return;
    case Hdf5Question::Kind::list:
      if (find_object(file->id(), question.object, question.path) != Hdf5Kind::group) {
        throw sdk::Error(HR_INVALID_ARGUMENT,
                         dataset_of(question.object, question.path) + " is a dataset, not a group");
      }
      result.names = list_group(file->id(), question.object);
      return;
    case Hdf5Question::Kind::attribute:
      result.attribute = read_attribute(file->id(), question.object, question.attribute, question.path);
      return;
    case Hdf5Question::Kind::survey:
      result.survey = survey_file(file->id(), question.path);
      return;
    case Hdf5Question::Kind::copy:
      copy_without_values(file->id(), question.path, question.copy);
      return;
    case Hdf5Question::Kind::strings:
      result.strings = read_strings(file->id(), question.object, question.path);
      return;
  }
}

}  // namespace

Hdf5Answer answer_here(const Hdf5Question& question, bool may_print) {
  Hdf5Answer result;
  const Hdf5Lock lock;
  try {
    answer(question, may_print, result);
  } catch (const CannotWrite& problem) {
    result.status = problem.status();
    result.sentence = problem.what();
    result.cannot_write = true;
  } catch (const sdk::Error& problem) {
    result.status = problem.status();
    result.sentence = problem.what();
  } catch (const std::bad_alloc&) {
    result.status = HR_OUT_OF_MEMORY;
    result.sentence = "out of memory while " + in_quotes(question.path) + " was looked at";
  } catch (const std::exception& problem) {
    result.status = HR_INTERNAL;
    result.sentence = problem.what();
  }
  return result;
}

std::string to_bytes(const Hdf5Question& question) {
  WireWriter out;
  out.put(question.kind);
  for (const std::string* text : {&question.folder, &question.path, &question.object, &question.attribute})
    out.put_all(*text);
  put(out, question.copy);
  return out.bytes();
}

Hdf5Question question_from(std::span<const char> bytes) {
  WireReader in(bytes);
  Hdf5Question question;
  question.kind = in.take<Hdf5Question::Kind>();
  for (std::string* text : {&question.folder, &question.path, &question.object, &question.attribute})
    *text = in.take_all<std::string>();
  question.copy = take_copy_request(in);
  return question;
}

std::string to_bytes(const Hdf5Answer& answer) {
  WireWriter out;
  out.put(answer.status);
  out.put_all(answer.sentence);
  out.put(answer.cannot_write);
  put(out, answer.plan);
  out.put(uint64_t{answer.names.size()});
  for (const Hdf5Name& name : answer.names) {
    out.put_all(name.name);
    out.put(name.is_group);
  }
  out.put(answer.attribute);
  out.put(uint64_t{answer.strings.size()});
  for (const std::string& text : answer.strings) out.put_all(text);
  put(out, answer.survey);
  return out.bytes();
}

Hdf5Answer answer_from(std::span<const char> bytes) {
  WireReader in(bytes);
  Hdf5Answer answer;
  answer.status = in.take<hr_status>();
  answer.sentence = in.take_all<std::string>();
  answer.cannot_write = in.take<bool>();
  answer.plan = take_plan(in);
  const auto names = in.take<uint64_t>();
  for (uint64_t i = 0; i < names; ++i) {
    auto name = in.take_all<std::string>();
    const auto is_group = in.take<bool>();
    answer.names.push_back({std::move(name), is_group});
  }
  answer.attribute = in.take<hr_attribute>();
  const auto strings = in.take<uint64_t>();
  for (uint64_t i = 0; i < strings; ++i) answer.strings.push_back(in.take_all<std::string>());
  answer.survey = take_survey(in);
  return answer;
}

}  // namespace headroom
