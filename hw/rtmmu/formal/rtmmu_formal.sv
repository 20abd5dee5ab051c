// What the unit is asked to do and what it must answer, for a bounded model check: Lemma 1 on the synthesisable unit.
//
// The software's side is free within its duty: any region that overlaps no other is made, any live region unmapped, any
// page filled into the region it lies in, any page accessed, in any order, with any contents of c, h and s at the
// start, any page table, and any wait of the memory. `live` and `filled` are the plain truth kept beside it.
//
// Invariant checked: an access is translated if and only if its page was filled since its region was made and the
// region grants the access; a fault says which of both fails. Covered: each of those answers is reached.

module rtmmu_formal #(
    parameter integer W = 2,
    parameter integer Entries = 1
) (
    input logic clk
);
  localparam integer N = 2 ** W;

  logic started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;

  // The choices of the solver.
  (* anyseq *)logic choose;
  (* anyseq *)logic [1:0] choice;
  (* anyseq *)logic [W-1:0] choice_page;
  (* anyseq *)logic [W:0] choice_end;
  (* anyseq *)logic choice_writable;
  (* anyseq *)logic choice_store;
  (* anyseq *)logic memory_answers;
  (* anyseq *)logic [31:0] memory_data;

  // The truth: region of each page, and whether the page was filled.
  logic [N-1:0] live, filled, writable;
  logic [W-1:0] first[N];
  initial live = '0;

  // One operation at a time.
  localparam logic [1:0] Make = 2'd0;
  localparam logic [1:0] Unmap = 2'd1;
  localparam logic [1:0] Fill = 2'd2;
  localparam logic [1:0] Access = 2'd3;
  localparam logic [1:0] Rest = 2'd0;
  localparam logic [1:0] Write = 2'd1;
  localparam logic [1:0] Page = 2'd2;
  localparam logic [1:0] Touch = 2'd3;
  logic [1:0] busy_with;
  initial busy_with = Rest;
  logic [1:0] operation;
  logic [W-1:0] page, region;
  logic grants, store;

  // Whether the chosen region is free, and the pages it has.
  logic [N-1:0] chosen;
  always_comb
    for (int i = 0; i < N; i++) chosen[i] = (W + 1)'(i) >= (W + 1)'(choice_page) && (W + 1)'(i) < choice_end;

  logic [31:0] register_data;
  logic [3:0] register_number;
  logic register_ack, busy, fault, miss, request;
  logic [31:0] address, table_address;
  logic access, answer;
  logic [1:0] cause;
  assign access = busy_with == Touch;
  assign address = {2'b01, 30'd0} | 32'(page) << 13;
  assign register_number = busy_with == Page ? 4'd12 : operation == Fill ? 4'd9 : 4'd8;
  always_comb begin
    register_data = 32'(busy_with == Page ? page : region) << 4;
    if (busy_with == Write && operation == Make) register_data[3:0] = grants ? 4'b1111 : 4'b0101;
  end

  rtmmu #(
      .PagesLog2(W),
      .Tables(1),
      .Entries(Entries)
  ) unit (
      .clk,
      .rst(!started),
      .enable_i(access),
      .load_i(access && !store),
      .store_i(access && store),
      .supervisor_i(1'b1),
      .address_i(address),
      .address_o(),
      .inhibit_o(),
      .miss_o(miss),
      .busy_o(busy),
      .fault_o(fault),
      .fault_clear_i(!access),
      .table_request_o(request),
      .table_address_o(table_address),
      .table_ack_i(answer),
      .table_data_i(memory_data),
      .register_select_i(busy_with == Write || busy_with == Page),
      .register_write_i(1'b1),
      .register_i(register_number),
      .register_data_i(register_data),
      .register_data_o(),
      .register_ack_o(register_ack),
      .cause_o(cause)
  );

  // Main memory answers a request once, from the third clock on, as the core's load store unit does: the local
  // memories have read by then.
  logic [1:0] waited;
  assign answer = request && waited == 2'd2 && memory_answers;
  always_ff @(posedge clk)
    if (!request) waited <= 2'd0;
    else if (waited != 2'd2) waited <= waited + 2'd1;

  always_ff @(posedge clk)
    if (started)
      case (busy_with)
        Rest:
        if (choose) begin
          operation <= choice;
          page <= choice_page;
          store <= choice_store;
          grants <= choice_writable;
          case (choice)
            Make:
            if (choice_end > {1'b0, choice_page} && choice_end <= (W + 1)'(N) && (live & chosen) == '0) begin
              busy_with <= Write;
              region <= choice_page;
              live <= live | chosen;
              filled <= filled & ~chosen;
              for (int i = 0; i < N; i++)
                if (chosen[i]) begin
                  first[i] <= choice_page;
                  writable[i] <= choice_writable;
                end
            end
            Unmap:
            if (live[choice_page] && first[choice_page] == choice_page) begin
              busy_with <= Write;
              region <= choice_page;
              for (int i = 0; i < N; i++) if (live[i] && first[i] == choice_page) live[i] <= 1'b0;
            end
            Fill:
            if (live[choice_page] && !filled[choice_page]) begin
              busy_with <= Page;
              region <= first[choice_page];
              filled[choice_page] <= 1'b1;
            end
            Access: busy_with <= Touch;
          endcase
        end
        Page: if (register_ack) busy_with <= Write;
        Write: if (register_ack) busy_with <= Rest;
        Touch: if (!busy) busy_with <= Rest;
      endcase

  logic truth_mapped, truth_allowed;
  assign truth_mapped  = live[page] && filled[page];
  assign truth_allowed = !store || writable[page];

  always_comb
    if (started && access && !busy) begin
      assert (fault == !(truth_mapped && truth_allowed));
      assert (miss == 1'b0);
      if (fault) assert (cause == (truth_mapped ? 2'd1 : 2'd0));
      translated : cover (!fault);
      fault_missing : cover (fault && cause == 2'd0 && live[page]);
      fault_rights : cover (fault && cause == 2'd1);
    end
endmodule
